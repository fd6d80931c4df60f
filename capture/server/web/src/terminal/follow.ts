// The scroll position of a terminal: its cursor stays in view until the user scrolls up.

/** Heights in the pane, px from the top of the scrolled content. */
export type Layout = { height: number; window: number; line: number; cursor: number | null; filled: number };

/** The scroll position that shows the cursor and as much as possible above it. */
export function restingPlace({ height, window, line, cursor, filled }: Layout): number {
  const end = Math.max(0, height - window);
  // Without a cursor, the program writes to the last line with text.
  const kept = cursor === null ? filled - window + line : cursor - line;
  return Math.min(end, Math.max(0, kept));
}

/** Follows the cursor of a pane. */
export class Follower {
  private following = true;
  /** The last scroll position set by this class. */
  private placed = -1;

  constructor(
    private readonly pane: HTMLElement,
    private readonly tell: (following: boolean) => void,
  ) {}

  private layout(): Layout {
    const { pane } = this;
    const top = pane.getBoundingClientRect().top - pane.scrollTop;
    const lines = pane.querySelectorAll<HTMLElement>(".terminal-line");
    const cursor = pane.querySelector(".cursor")?.closest(".terminal-line")?.getBoundingClientRect() ?? null;
    let last = lines.length - 1;
    while (last > 0 && lines[last]?.textContent?.trim() === "") last -= 1;
    const filled = (lines[last]?.getBoundingClientRect().bottom ?? top) - top;
    return {
      height: pane.scrollHeight,
      window: pane.clientHeight,
      line: lines[0]?.offsetHeight ?? 16,
      cursor: cursor === null ? null : cursor.top - top,
      filled,
    };
  }

  /** Called after the screen or the pane changed. */
  changed(): void {
    if (this.following) this.rest();
  }

  /** Goes back to the cursor. */
  rest(): void {
    this.set(true);
    this.place(restingPlace(this.layout()));
  }

  /** Keeps the scroll position, whatever arrives. */
  stay(): void {
    this.set(false);
  }

  /** Called after any scrolling of the pane. */
  scrolled(): void {
    const { pane } = this;
    if (Math.abs(pane.scrollTop - this.placed) < 2) return;
    const layout = this.layout();
    this.placed = -1;
    this.set(pane.scrollTop >= restingPlace(layout) - layout.line);
  }

  /** After lines of `height` px were inserted above, shows the lines just before those that were visible. */
  above(height: number, top: number): void {
    const { pane } = this;
    this.set(false);
    const added = pane.scrollHeight - height;
    this.place(Math.max(0, top + added - pane.clientHeight + 2 * this.layout().line));
  }

  private set(following: boolean): void {
    if (following === this.following) return;
    this.following = following;
    this.tell(following);
  }

  private place(top: number): void {
    this.pane.scrollTop = top;
    this.placed = this.pane.scrollTop;
  }
}
