/** Stores a value at index `id`. `empty` fills the indexes before it: arrays with holes are slow. */
export function putAt<T>(list: T[], id: number, value: T, empty: T): void {
  while (list.length < id) list.push(empty)
  list[id] = value
}

/** Do two lists contain the same ids, in the same order? */
export function sameIds(a: ArrayLike<number>, b: readonly number[]): boolean {
  return a.length === b.length && b.every((id, i) => id === a[i])
}
