import type { Arg } from '../../model/args.ts'

/** Things that are open at the same time, slices of a row or of an operation, too: what never ends must not fill the memory. */
const OPEN_MAX = 1 << 12

/** What has begun and not ended. */
export interface Begun {
  readonly args: readonly Arg[] | undefined
  readonly name: number
  readonly category: number | undefined
  readonly startNs: number
  readonly order: number
}

/** Begins and ends of threads, which nest by the order in which they come. */
export class Stacks {
  private readonly stacks = new Map<number, Begun[]>()

  /** False where too many are open. */
  begin(row: number, begun: Begun): boolean {
    const stack = this.stacks.get(row)
    if (!stack) this.stacks.set(row, [begun])
    else if (stack.length >= OPEN_MAX) return false
    else stack.push(begun)
    return true
  }

  /** What ends now; undefined where nothing is open. */
  end(row: number): Begun | undefined {
    return this.stacks.get(row)?.pop()
  }

  /** What is still open at the end, the innermost of each row first. */
  *rest(): Generator<readonly [number, Begun]> {
    for (const [row, stack] of this.stacks) while (stack.length > 0) yield [row, stack.pop()!]
  }
}

interface Operation {
  readonly lanes: Set<number>
  readonly lane: number
  readonly row: number
  readonly stack: Begun[]
}

/**
 * Asynchronous operations: what is open under one id nests, and has a row for itself until all of it has ended; so there
 * are as many rows as are open at once.
 */
export class Operations {
  private readonly open = new Map<string, Operation>()
  /** Lanes in use, by group of rows. */
  private readonly lanes = new Map<string, Set<number>>()

  /** `rowOf` has the row of a lane. False where too many are open. */
  begin(id: string, group: string, begun: Begun, rowOf: (lane: number) => number): boolean {
    let operation = this.open.get(id)
    if (!operation) {
      if (this.open.size >= OPEN_MAX) return false
      const lanes = this.lanes.get(group) ?? new Set<number>()
      this.lanes.set(group, lanes)
      let lane = 0
      while (lanes.has(lane)) lane++
      lanes.add(lane)
      operation = { lanes, lane, row: rowOf(lane), stack: [] }
      this.open.set(id, operation)
    }
    if (operation.stack.length >= OPEN_MAX) return false
    operation.stack.push(begun)
    return true
  }

  /** What ends now and its row; undefined where nothing is open. */
  end(id: string): readonly [number, Begun] | undefined {
    const operation = this.open.get(id)
    if (!operation) return undefined
    const begun = operation.stack.pop()!
    if (operation.stack.length === 0) {
      this.open.delete(id)
      operation.lanes.delete(operation.lane)
    }
    return [operation.row, begun]
  }

  /** The row of an operation that is open. */
  rowOf(id: string): number | undefined {
    return this.open.get(id)?.row
  }

  /** What is still open at the end. */
  *rest(): Generator<readonly [number, Begun]> {
    for (const { row, stack } of this.open.values()) while (stack.length > 0) yield [row, stack.pop()!]
  }
}
