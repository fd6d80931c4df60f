// How old what is shown is. The server says when it sent each piece; the piece that took the least time tells how far
// apart both clocks are.

/** The longest time between two pieces, milliseconds: the server sends one when nothing happens, too. */
const SENT_EVERY = 5_000;

/** The age of what has arrived over one connection. */
export class Lag {
  private least = Infinity;
  private last = 0;
  private heardAt = 0;

  /** A piece came at `now`, by a clock that nobody sets, that the server sent at `sent` by its own; milliseconds both. */
  heard(sent: number, now: number): void {
    const took = now - sent;
    this.least = Math.min(this.least, took);
    this.last = took - this.least;
    this.heardAt = now;
  }

  /** How old the newest piece is, beyond the time that any piece takes, milliseconds. */
  behind(now: number): number {
    if (this.heardAt === 0) return 0;
    const silence = now - this.heardAt;
    return silence > SENT_EVERY + 1_000 ? this.last + silence : this.last;
  }
}
