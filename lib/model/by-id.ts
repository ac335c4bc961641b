/** Stores a value at index `id`. `empty` fills the indexes before it: arrays with holes are slow. */
export function putAt<T>(list: T[], id: number, value: T, empty: T): void {
  while (list.length < id) list.push(empty)
  list[id] = value
}

/** Do two lists contain the same ids, in the same order? */
export function sameIds(a: ArrayLike<number>, b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
