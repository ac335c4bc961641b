/** Puts a value at its id into a list by ids. `empty` fills the places before it: a list with holes is slow to read. */
export function putAt<T>(list: T[], id: number, value: T, empty: T): void {
  while (list.length < id) list.push(empty)
  list[id] = value
}
