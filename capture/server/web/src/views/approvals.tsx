export function ApprovalsPage(_: { id?: string; focus?: string | null }) { return <h1 tabIndex={-1}>approvals</h1>; }
