export function OverviewPage(_: { id?: string; focus?: string | null }) { return <h1 tabIndex={-1}>overview</h1>; }
