// Prints the OpenAPI document of the program that CAPTURE_BINARY names, from a separate server.
import { World } from "../e2e/world.mjs";

const world = new World();
try {
  await world.serve();
  console.log(JSON.stringify(await world.api("/openapi.json")));
} finally {
  await world.close();
}
