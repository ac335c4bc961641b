/** A map that makes the value of a key when it is first asked for. */
export class DefaultMap<K, V> extends Map<K, V> {
  constructor(private readonly make: (key: K) => V) {
    super()
  }

  /** The value of a key, made if there is none. */
  of(key: K): V {
    let value = this.get(key)
    if (value === undefined) {
      value = this.make(key)
      this.set(key, value)
    }
    return value
  }
}

/** The value of a key in any map, made if there is none. */
export function getOrMake<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
