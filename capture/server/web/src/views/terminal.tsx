export function TerminalPage(_: { id?: string; focus?: string | null }) { return <h1 tabIndex={-1}>terminal</h1>; }
