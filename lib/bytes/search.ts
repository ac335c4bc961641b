/** The first index from `start` to before `end` at which `isReached`, which stays true from there on; `end`: none. */
export function firstIndex(start: number, end: number, isReached: (index: number) => boolean): number {
  let [low, high] = [start, end]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}
