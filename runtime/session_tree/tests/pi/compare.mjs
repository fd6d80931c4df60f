// Compares `capture agent session` with the real package, on files and on sessions made at random.
//
//   npm install @earendil-works/pi-coding-agent@0.87.1        (node 22.19 or later)
//   node compare.mjs PI CAPTURE [--random COUNT] [FILE…]
//
// PI is the package's directory, CAPTURE the program. Ends with 1 when an answer differs.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as answers from "./answers.mjs";
import { session } from "./sessions.mjs";

const [piPath, capture, ...rest] = process.argv.slice(2);
const pi = await answers.load(resolve(piPath));
const random = rest[0] === "--random" ? Number(rest[1]) : 0;
const first = Number(process.env.FIRST ?? 1);
const files = rest[0] === "--random" ? rest.slice(2) : rest;
const scratch = mkdtempSync(join(tmpdir(), "pi-compare-"));
let asked = 0;
const differ = [];
const failed = new Map();

function ours(verb, file, ...more) {
    const ran = spawnSync(capture, ["agent", "session", verb, file, "--json", ...more], { encoding: "utf8", maxBuffer: 1 << 28 });
    try {
        return JSON.parse(ran.stdout);
    } catch {
        return { broken: ran.stderr, status: ran.status };
    }
}

function check(what, theirs, our) {
    asked++;
    // Where pi fails inside, or would never end, there is nothing to compare with.
    if (!theirs.ok && !/valid pi session|not found/.test(theirs.error)) {
        failed.set(theirs.error, (failed.get(theirs.error) ?? 0) + 1);
        return;
    }
    const same = theirs.ok ? isDeepStrictEqual(theirs, our) : our.ok === false;
    if (!same) differ.push({ what, theirs, our });
}

function compare(file, name) {
    const { issues, ...loaded } = ours("load", file, "--issues");
    const theirs = answers.loaded(pi, file);
    // When it writes a damaged file anew, pi throws away what it could not read.
    if (issues?.length > 0 && theirs.fileRewritten) theirs.sizeAfter = loaded.sizeAfter;
    // A version that is no number: pi writes the same file again, we leave it.
    if (Number.isNaN(Number(loaded.header?.version ?? 0))) Object.assign(theirs, { fileRewritten: loaded.fileRewritten, sizeAfter: loaded.sizeAfter });
    check(`${name} load`, theirs, loaded);
    check(`${name} tree`, answers.tree(pi, file), ours("tree", file));
    check(`${name} context`, answers.context(pi, file), ours("context", file));
    check(`${name} llm`, answers.llm(pi, file), ours("llm", file));
    for (const keep of [1, 60, 400]) {
        check(`${name} plan ${keep}`, answers.plan(pi, file, keep), ours("compact-plan", file, "--keep", String(keep)));
    }
}

/** A session that we have written: moved, labelled, forked. pi must find in it what we find. */
function written(file, name) {
    const copy = join(scratch, "written.jsonl");
    copyFileSync(file, copy);
    const path = ours("path", copy);
    const ids = (path.path ?? []).map((entry) => entry.id).filter((id) => id && !id.startsWith("gen-"));
    if (ids.length < 2) return;
    const middle = ids[Math.floor(ids.length / 2)];
    for (const change of [
        ["labels", "--set", ids[0], "ours"], ["branch", middle], ["branch", ids[ids.length - 1], "--summary", "was there"], ["branch", middle],
    ]) {
        const [verb, ...more] = change;
        const made = ours(verb, copy, ...more);
        if (!made.ok) differ.push({ what: `${name} ${verb}`, theirs: "done", our: made });
    }
    const { leafId: theirs, ...context } = answers.context(pi, copy);
    const { leafId, ...our } = ours("context", copy);
    check(`${name} written`, { ...context }, our);
    if (leafId !== middle) differ.push({ what: `${name} leaf`, theirs: middle, our: leafId });
    const forked = ours("fork", copy, middle, "--whole");
    const { leafId: _, ...ofPi } = answers.context(pi, forked.file);
    const { leafId: __, ...ofOurs } = ours("context", forked.file);
    check(`${name} forked`, ofPi, ofOurs);
    // The same fork made by pi gives the same context.
    const other = join(scratch, "other.jsonl");
    copyFileSync(copy, other);
    const manager = pi.SessionManager.open(other, scratch);
    manager.createBranchedSession(middle);
    const { messages, thinkingLevel, model } = manager.buildSessionContext();
    check(`${name} fork`, JSON.parse(JSON.stringify({ ok: true, messages, thinkingLevel, model })), ofOurs);
    rmSync(forked.file, { force: true });
}

try {
    for (const file of files) {
        compare(file, file);
    }
    for (let seed = first; seed < first + random; seed++) {
        const file = join(scratch, `${seed}.jsonl`);
        writeFileSync(file, session(seed));
        compare(file, `seed ${seed}`);
        try {
            written(file, `seed ${seed}`);
        } catch (error) {
            failed.set(error.message, (failed.get(error.message) ?? 0) + 1);
        }
        rmSync(file);
    }
} finally {
    rmSync(scratch, { recursive: true, force: true });
}
for (const { what, theirs, our } of differ.slice(0, 20)) {
    console.log(`DIFFERENT ${what}\n  pi   ${JSON.stringify(theirs).slice(0, 900)}\n  ours ${JSON.stringify(our).slice(0, 900)}`);
}
console.log(`${asked} answers compared, ${differ.length} differ`);
for (const [error, times] of failed) console.log(`pi failed ${times} times: ${error}`);
process.exit(differ.length > 0 ? 1 : 0);
