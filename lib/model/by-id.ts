/** Stores a value at index `id`. `empty` fills the indexes before it: arrays with holes are slow. */
export function putAt<T>(list: T[], id: number, value: T, empty: T): void {
  while (list.length < id) list.push(empty)
  list[id] = value
}
