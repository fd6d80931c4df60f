// The age of the displayed data. The server sends its time with each piece; the piece with the shortest transit time
// determines the offset of the two clocks.

/** Longest interval between two pieces, milliseconds: the server sends one even if nothing happens. */
const SENT_EVERY = 5_000;

/** The age of the data received over one connection. */
export class Lag {
  private least = Infinity;
  private last = 0;
  private heardAt = 0;

  /** Records a piece received at `now` on a monotonic clock, which the server sent at `sent` on its clock; both in
   * milliseconds. */
  heard(sent: number, now: number): void {
    const took = now - sent;
    this.least = Math.min(this.least, took);
    this.last = took - this.least;
    this.heardAt = now;
  }

  /** The age of the newest piece beyond the shortest transit time, milliseconds. */
  behind(now: number): number {
    if (this.heardAt === 0) return 0;
    const silence = now - this.heardAt;
    return silence > SENT_EVERY + 1_000 ? this.last + silence : this.last;
  }
}
