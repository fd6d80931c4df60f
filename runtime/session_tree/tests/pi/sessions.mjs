// Makes sessions at random, from a seed: trees with every kind of entry, old versions, and some damage.

/** Mulberry32. */
export function dice(seed) {
    let state = seed >>> 0;
    const next = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = state;
        t = Math.imul(t ^ (t >>> 15), t | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const below = (n) => Math.floor(next() * n);
    return { below, chance: (p) => next() < p, one: (list) => list[below(list.length)] };
}

const TEXTS = ["", "hi", "ein längerer Text 😀", "x".repeat(300), 'quotes " and \\ and\nlines', "y".repeat(2600)];
const FILES = ["a.rs", "b/c.txt", "é.md", ""];

export function session(seed) {
    const d = dice(seed);
    const text = () => d.one(TEXTS);
    const content = () =>
        d.chance(0.25) ? text()
        : d.chance(0.05) ? null
        : Array.from({ length: d.below(3) }, () =>
            d.chance(0.85) ? { type: "text", text: text() } : { type: "image", data: "AAAA", mimeType: "image/png" });
    const usage = () =>
        d.chance(0.1) ? undefined
        : d.chance(0.2) ? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } }
        : { input: d.below(500), output: d.below(90), cacheRead: 3, cacheWrite: 1, ...(d.chance(0.6) ? { totalTokens: d.below(900) } : {}), cost: { total: 0.25 } };
    const block = () =>
        d.one([
            () => ({ type: "text", text: text() }),
            () => ({ type: "thinking", thinking: text(), thinkingSignature: "s" }),
            () => ({
                type: "toolCall", id: "c1", name: d.one(["read", "write", "edit", "bash"]),
                arguments: d.chance(0.8) ? { path: d.one(FILES), z: 1.5, a: [text(), null] } : {},
            }),
        ])();
    const message = () =>
        d.one([
            () => ({ role: "user", content: content(), timestamp: 1767323059000 + d.below(9999) }),
            () => ({ role: "user", content: [{ type: "text", text: text() }], timestamp: 1 }),
            () => ({
                role: "assistant", content: d.chance(0.05) ? null : Array.from({ length: d.below(4) }, block),
                ...(d.chance(0.9) ? { provider: d.one(["p", "q"]), model: d.one(["m1", "m2"]) } : {}),
                usage: usage(), stopReason: d.one(["stop", "toolUse", "error", "aborted", "length"]), timestamp: 5,
            }),
            () => ({ role: "assistant", content: [block()], provider: "p", model: "m", usage: usage(), stopReason: "stop", timestamp: 6 }),
            () => ({ role: "toolResult", toolCallId: "c1", toolName: "read", content: content() ?? [], isError: false, timestamp: 7 }),
            () => ({
                role: "bashExecution", command: text(), output: text(), exitCode: d.one([0, 1, null, undefined]),
                cancelled: d.chance(0.2), truncated: d.chance(0.3), fullOutputPath: d.one([undefined, "/tmp/o"]),
                ...(d.chance(0.2) ? { excludeFromContext: true } : {}), timestamp: 8,
            }),
            () => ({ role: d.one(["custom", "hookMessage", "alien"]), customType: "x", content: content() ?? [], display: true, timestamp: 9 }),
            () => ({
                role: "system", content: d.one(["", "prompt", null]),
                ...(d.chance(0.5) ? { sections: { a: d.one([text(), null]), b: "B" } } : {}),
                ...(d.chance(0.5) ? { toolsAdded: [{ name: d.one(["t", "u"]), description: "d", parameters: { n: 1 } }] } : {}),
                ...(d.chance(0.3) ? { toolsRemoved: [{ name: "t" }] } : {}),
                timestamp: 10,
            }),
        ])();
    const ids = [];
    const version = d.one([3, 3, 3, 3, 3, 3, 2, 1, 4, "2", 0, null, "x"]);
    const old = version === null || version === undefined || Number(version) < 2;
    const any = () => (ids.length > 0 && d.chance(0.9) ? d.one(ids) : d.one(["ffffffff", "", null, undefined]));
    const details = () => d.one([undefined, null, { readFiles: ["r.txt", "a.rs"], modifiedFiles: ["m.txt"] }, { readFiles: "no" }]);
    const own = (index) =>
        d.one([
            ...Array(9).fill(() => ({ type: "message", message: message() })),
            () => ({ type: "thinking_level_change", thinkingLevel: d.one(["high", "low", undefined]) }),
            () => ({ type: "model_change", provider: "p2", modelId: d.one(["m9", undefined]) }),
            () => ({
                type: "compaction", summary: d.one(["S", "", "long ".repeat(40)]), tokensBefore: d.below(9999),
                ...(old ? { firstKeptEntryIndex: d.one([d.below(index + 4), -1, 1.5, "1"]) } : { firstKeptEntryId: any() }),
                details: details(), ...(d.chance(0.2) ? { fromHook: true } : {}),
                ...(d.chance(0.2) ? { systemMessage: { role: "system", content: "kept", timestamp: 3 } } : {}),
            }),
            () => ({ type: "branch_summary", fromId: any(), summary: d.one(["B", "", undefined]), details: details() }),
            () => ({ type: "custom", customType: "ext", data: { n: 1 } }),
            () => ({ type: "custom_message", customType: "ext", content: content(), display: d.chance(0.5), details: d.one([undefined, { k: 1 }]) }),
            () => ({ type: "label", targetId: any(), label: d.one(["L", "M", "", null, undefined]) }),
            () => ({ type: "session_info", name: d.one(["name", ""]) }),
            () => ({ type: "context_edit", targetId: any(), replacement: d.one([null, { content: text() }, { content: [{ type: "text", text: "e" }] }]) }),
            () => ({ type: "usage", kind: "k", provider: "p", model: "m", usage: {} }),
            () => ({ type: d.one(["from_the_future", "mode_change", "ttsr_injection", "session_init", undefined]), data: 1 }),
        ])();
    const count = d.below(40);
    const header = { type: "session", version, id: `seed-${seed}`, timestamp: "2026-01-02T03:04:05.000Z", cwd: "/proj" };
    if (d.chance(0.05)) delete header.version;
    const lines = [];
    if (d.chance(0.05)) lines.push("garbage {");
    if (d.chance(0.05)) lines.push("null", "");
    lines.push(JSON.stringify(header));
    for (let index = 0; index < count; index++) {
        const id = d.chance(0.02) && ids.length > 0 ? d.one(ids) : (0xa0000000 + index).toString(16);
        // A repeated id may follow only what stands before its first line, or pi never ends.
        const repeated = ids.includes(id);
        const parentId =
            repeated ? null
            : ids.length === 0 ? null
            : d.chance(0.8) ? ids[ids.length - 1]
            : d.chance(0.8) ? d.one(ids)
            : d.one([null, "ffffffff", "", undefined]);
        const timestamp = d.one([
            `2026-01-02T03:${String(10 + d.below(40))}:00.000Z`, `2026-01-02T03:${String(10 + d.below(40))}:00.000Z`,
            "2026-01-02T03:30:00Z", "2026-01-02", ...(d.chance(0.3) ? ["not a date", undefined, 1767323059000, null] : []),
        ]);
        const base = { type: undefined, id, parentId, timestamp };
        const entry = { ...base, ...own(index) };
        if (d.chance(0.01)) delete entry.id;
        if (old && d.chance(0.7)) { delete entry.id; delete entry.parentId; }
        if (entry.id !== undefined && !repeated) ids.push(entry.id);
        let line = JSON.stringify(entry);
        if (d.chance(0.01)) line = line.slice(0, d.below(line.length));
        if (d.chance(0.01)) line = ` ${line}\r`;
        if (d.chance(0.01)) line = JSON.stringify({ ...header, id: "second" });
        lines.push(line);
    }
    const end = d.one(["\n", "\n", "\n", "", "\n\n", '\n{"type":"mess']);
    return lines.join("\n") + end;
}
