export function DevicesPage(_: { id?: string; focus?: string | null }) { return <h1 tabIndex={-1}>devices</h1>; }
