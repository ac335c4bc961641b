/**
 * A map of objects that come and go, in the order in which they were added. V8 chains the tables of a Map: once one of them is old, all that
 * later ones ever contained is kept until the next collection of all memory. Here, these tables contain only numbers.
 */
export class IdMap<V extends object> {
  private readonly places = new Map<number, number>()
  private readonly list: (V | undefined)[] = []
  private readonly free: number[] = []

  get size(): number {
    return this.places.size
  }

  get(id: number): V | undefined {
    const place = this.places.get(id)
    return place === undefined ? undefined : this.list[place]
  }

  has(id: number): boolean {
    return this.places.has(id)
  }

  set(id: number, value: V): void {
    let place = this.places.get(id)
    if (place === undefined) {
      place = this.free.pop() ?? this.list.length
      this.places.set(id, place)
    }
    this.list[place] = value
  }

  delete(id: number): boolean {
    const place = this.places.get(id)
    if (place === undefined) return false
    this.list[place] = undefined
    this.free.push(place)
    return this.places.delete(id)
  }

  /** The id that was added first. */
  get first(): number | undefined {
    return this.places.keys().next().value
  }

  *[Symbol.iterator](): Generator<[number, V], void> {
    for (const [id, place] of this.places) yield [id, this.list[place]!]
  }
}
