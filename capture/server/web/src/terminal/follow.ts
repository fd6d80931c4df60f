// Where a terminal is scrolled to: its cursor stays in view until somebody scrolls up.

/** Heights in the pane, px from the top of what is scrolled. */
export type Layout = { height: number; window: number; line: number; cursor: number | null; filled: number };

/** Where the pane is scrolled to, so that the cursor is in view and as much as possible of what stands above it. */
export function restingPlace({ height, window, line, cursor, filled }: Layout): number {
  const end = Math.max(0, height - window);
  // Without a cursor the last line that has text is what a program writes.
  const kept = cursor === null ? filled - window + line : cursor - line;
  return Math.min(end, Math.max(0, kept));
}

/** Follows the cursor of a pane. */
export class Follower {
  private following = true;
  /** Where the pane was scrolled to by this program. */
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

  /** Called after the screen changed, or the pane. */
  changed(): void {
    if (this.following) this.rest();
  }

  /** Goes back to the cursor. */
  rest(): void {
    this.set(true);
    this.place(restingPlace(this.layout()));
  }

  /** Stays where it is, whatever comes. */
  stay(): void {
    this.set(false);
  }

  /** Called when the pane was scrolled by whatever. */
  scrolled(): void {
    const { pane } = this;
    if (Math.abs(pane.scrollTop - this.placed) < 2) return;
    const layout = this.layout();
    this.placed = -1;
    this.set(pane.scrollTop >= restingPlace(layout) - layout.line);
  }

  /** Shows what was put above `height` px of lines: the lines just before those that were seen. */
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
