import { resized } from '../../bytes/resized.ts'

/** Maps ids of the shared `Names` to interned ids of one kind, from 1, in order of first use. */
export class Iids {
  private iids = new Int32Array(256)
  private count = 0

  of(name: number): number {
    if (name >= this.iids.length) this.iids = resized(this.iids, Math.max(name + 1, this.iids.length * 2))
    const known = this.iids[name]!
    return known !== 0 ? known : this.assign(name)
  }

  private assign(name: number): number {
    this.iids[name] = ++this.count
    return this.count
  }
}

/** A set of small integers. */
export class IidSet {
  private known = new Uint8Array(64)

  has(iid: number): boolean {
    return this.known[iid] === 1
  }

  /** Adds an id. Returns false if the set contains it already. */
  add(iid: number): boolean {
    if (this.known[iid] === 1) return false
    if (iid >= this.known.length) this.known = resized(this.known, Math.max(iid + 1, this.known.length * 2))
    this.known[iid] = 1
    return true
  }
}
