// What the real package answers about a session's file, in the shapes that `capture agent session … --json` prints.
// Works on a copy: pi writes files of older versions anew when it opens them.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export async function load(pi) {
    const core = join(pi, "dist", "core");
    const [sessions, messages, compaction] = await Promise.all(
        ["session-manager.js", "messages.js", "compaction/compaction.js"].map((file) => import(join(core, file))),
    );
    return { ...sessions, ...messages, ...compaction };
}

const MINTED = (version) => version === undefined || version === null || Number(version) < 2;

/** Whether pi would walk for ever from this entry. */
function circles(manager, id) {
    const seen = new Set();
    for (let at = id; at && manager.getEntry(at); at = manager.getEntry(at).parentId) {
        if (seen.has(at)) return true;
        seen.add(at);
    }
    return false;
}

/** Runs `answer` on a copy of the file, opened by pi; ids that pi made are told by their place. */
function on(pi, file, answer) {
    const directory = mkdtempSync(join(tmpdir(), "pi-answers-"));
    try {
        const copy = join(directory, "session.jsonl");
        copyFileSync(file, copy);
        const sizeBefore = statSync(copy).size;
        const before = readFileSync(copy);
        // Asked of another copy: asking repairs the end of the file.
        const asked = join(directory, "asked.jsonl");
        copyFileSync(file, asked);
        const [header] = pi.loadEntriesFromFile(asked);
        const isOld = header !== undefined && MINTED(header.version);
        const manager = pi.SessionManager.open(copy, directory);
        const names = new Map();
        if (isOld) {
            manager.getEntries().forEach((entry, index) => names.set(entry.id, `gen-${index + 1}`));
        }
        const shown = (id) => names.get(id) ?? id;
        const result = answer(manager, shown, { copy, sizeBefore, before });
        // Through text, as the recorded answers went: what is undefined is absent.
        return JSON.parse(JSON.stringify({ ok: true, ...result }));
    } catch (error) {
        return { ok: false, error: error.message };
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

function at(manager, leaf) {
    if (leaf === "null") manager.resetLeaf();
    else if (leaf !== undefined) manager.branch(leaf);
    if (circles(manager, manager.getLeafId())) throw new Error("an endless loop");
}

export function context(pi, file, leaf, convert = (messages) => messages) {
    return on(pi, file, (manager, shown) => {
        at(manager, leaf);
        const { messages, thinkingLevel, model } = manager.buildSessionContext();
        return { leafId: shown(manager.getLeafId()), messages: convert(messages), thinkingLevel, model };
    });
}

export const llm = (pi, file, leaf) => context(pi, file, leaf, pi.convertToLlm);

export function tree(pi, file) {
    return on(pi, file, (manager, shown) => {
        const roots = manager.getTree();
        const nodes = [];
        const seen = new Set();
        const open = roots.map((node) => [node, null, 0]).reverse();
        while (open.length > 0) {
            const [node, parent, depth] = open.pop();
            const { entry } = node;
            const known = { id: shown(entry.id), parent: parent === null ? null : (shown(parent.entry.id) ?? null), depth };
            if (seen.has(node)) {
                nodes.push({ ...known, repeated: true });
                continue;
            }
            seen.add(node);
            nodes.push({
                ...known,
                type: entry.type,
                role: entry.message?.role,
                label: node.label,
                labelTimestamp: node.labelTimestamp,
                children: node.children.map((child) => shown(child.entry.id)),
            });
            open.push(...node.children.map((child) => [child, node, depth + 1]).reverse());
        }
        return { roots: roots.map((node) => shown(node.entry.id)), leafId: shown(manager.getLeafId()), nodes };
    });
}

export function loaded(pi, file) {
    return on(pi, file, (manager, shown, { copy, sizeBefore, before }) => ({
        header: manager.getHeader(),
        entries: manager.getEntries().length,
        leafId: shown(manager.getLeafId()),
        fileRewritten: !readFileSync(copy).equals(before),
        sizeBefore,
        sizeAfter: statSync(copy).size,
    }));
}

export function plan(pi, file, keep) {
    return on(pi, file, (manager, shown) => {
        at(manager, undefined);
        const settings = { ...pi.DEFAULT_COMPACTION_SETTINGS, keepRecentTokens: keep };
        const made = pi.prepareCompaction(manager.getBranch(), settings);
        if (!made) return { nothing: true };
        return {
            firstKeptEntryId: shown(made.firstKeptEntryId),
            isSplitTurn: made.isSplitTurn,
            tokensBefore: made.tokensBefore,
            previousSummary: made.previousSummary,
            messagesToSummarize: made.messagesToSummarize.length,
            turnPrefixMessages: made.turnPrefixMessages.length,
            fileOps: Object.fromEntries(Object.entries(made.fileOps).map(([name, files]) => [name, [...files]])),
        };
    });
}
