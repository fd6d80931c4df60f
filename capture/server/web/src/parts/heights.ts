// The heights and positions of many rows: a Fenwick tree, so that correcting the estimated height of a row takes
// logarithmic time.

/** Heights by index, pixels. */
export class Heights {
  private values: Float64Array;
  private tree: Float64Array;
  private known: Uint8Array;
  length = 0;

  constructor(private readonly estimate: number) {
    this.values = new Float64Array(64);
    this.tree = new Float64Array(65);
    this.known = new Uint8Array(64);
  }

  /** Sets the number of rows; new ones get the estimated height. */
  resize(length: number): void {
    if (length === this.length) return;
    const capacity = Math.max(64, 2 ** Math.ceil(Math.log2(length + 1)));
    const values = new Float64Array(capacity);
    const known = new Uint8Array(capacity);
    values.set(this.values.subarray(0, Math.min(length, this.length)));
    known.set(this.known.subarray(0, Math.min(length, this.length)));
    values.fill(this.estimate, this.length, length);
    this.values = values;
    this.known = known;
    this.length = length;
    this.tree = new Float64Array(capacity + 1);
    for (let index = 1; index <= capacity; index += 1) {
      this.tree[index] = (this.tree[index] ?? 0) + (index <= length ? (values[index - 1] ?? 0) : 0);
      const parent = index + (index & -index);
      if (parent <= capacity) this.tree[parent] = (this.tree[parent] ?? 0) + (this.tree[index] ?? 0);
    }
  }

  /** Sets the height of a row; returns the difference. */
  set(index: number, height: number): number {
    if (index >= this.length) return 0;
    const change = height - (this.values[index] ?? 0);
    this.known[index] = 1;
    if (change === 0) return 0;
    this.values[index] = height;
    for (let at = index + 1; at < this.tree.length; at += at & -at) this.tree[at] = (this.tree[at] ?? 0) + change;
    return change;
  }

  get(index: number): number {
    return this.values[index] ?? 0;
  }

  /** Whether the row's height was measured. */
  measured(index: number): boolean {
    return this.known[index] === 1;
  }

  /** The top of a row: the sum of the heights before it. */
  top(index: number): number {
    let sum = 0;
    for (let at = Math.min(index, this.length); at > 0; at -= at & -at) sum += this.tree[at] ?? 0;
    return sum;
  }

  /** The row at this distance from the top; the last row if the distance is beyond the end. */
  at(offset: number): number {
    let index = 0;
    let rest = offset;
    for (let step = 2 ** Math.floor(Math.log2(this.tree.length)); step >= 1; step /= 2) {
      const next = index + step;
      if (next < this.tree.length && next <= this.length && (this.tree[next] ?? 0) <= rest) {
        index = next;
        rest -= this.tree[next] ?? 0;
      }
    }
    return Math.max(0, Math.min(index, this.length - 1));
  }

  /** The sum of all heights. */
  total(): number {
    return this.top(this.length);
  }
}
