// Writes sessions made at random with what the real package answers about them: record.mjs PI DIRECTORY SEED…
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as answers from "./answers.mjs";
import { session } from "./sessions.mjs";

const [piPath, directory, ...seeds] = process.argv.slice(2);
const pi = await answers.load(resolve(piPath));
for (const seed of seeds) {
    const made = join(directory, `seed-${seed.padStart(4, "0")}`);
    mkdirSync(made, { recursive: true });
    const file = join(made, "session.jsonl");
    writeFileSync(file, session(Number(seed)));
    for (const [name, answer] of [["load", answers.loaded], ["tree", answers.tree], ["context", answers.context], ["llm", answers.llm]]) {
        writeFileSync(join(made, `expected-${name}.json`), `${JSON.stringify(answer(pi, file), null, 1)}\n`);
    }
}
