export function SessionPage(_: { id?: string; focus?: string | null }) { return <h1 tabIndex={-1}>session</h1>; }
