// Bundles the tests of test/ for node and runs them.

import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
rmSync(at(".unit"), { recursive: true, force: true });
const tests = readdirSync(at("test")).filter((file) => /\.test\.tsx?$/.test(file));
await build({
  entryPoints: tests.map((file) => at(`test/${file}`)),
  outdir: at(".unit"),
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const files = readdirSync(at(".unit")).map((file) => at(`.unit/${file}`));
process.exit(spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1);
