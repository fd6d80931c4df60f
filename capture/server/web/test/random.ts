/** A random number generator with the same sequence in every run: `next(n)` is below `n`. */
export function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 13), 3_266_489_917) >>> 0;
    return below === 0 ? 0 : mixed % below;
  };
}
