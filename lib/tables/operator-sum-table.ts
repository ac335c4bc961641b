import { resized } from '../bytes/resized.ts'
import { putAt } from '../model/by-id.ts'
import { PHASES, type Phase } from '../model/call-events.ts'
import { DefaultMap } from '../model/default-map.ts'
import type { NodeFacts } from './nodes.ts'
import type { NewRow } from './table-file.ts'
import type { Tables } from './tables.ts'

/** Phases of calls by their code; 0: not known. */
const PHASE_CODES: readonly (Phase | null)[] = [null, ...PHASES]
/** Calls with a higher number have no phase here: a byte is held for each. */
const CALLS_MAX = 1 << 26
/** Calls whose operators wait for their phase: a log has a call at its end, or a few blocks later. */
const WAITING_MAX = 1024
/** Larger sums do not fit into a column. */
const INT64_END = 2n ** 63n

/** What operators of one sum have in common, but for the phase. */
type Group = Pick<NewRow<'operator_sum'>, 'role' | 'op' | 'type' | 'backend'>

/** An exact sum of integers of which some are not known. */
class Amount {
  private low = 0
  private high = 0n
  private isKnown = false

  add(value: number | null): void {
    if (value === null) return
    this.isKnown = true
    const sum = this.low + value
    if (sum <= Number.MAX_SAFE_INTEGER) this.low = sum
    else {
      this.high += BigInt(this.low) + BigInt(value)
      this.low = 0
    }
  }

  include({ low, high, isKnown }: Amount): void {
    if (isKnown) this.add(low)
    this.high += high
  }

  /** Null where no value is known. */
  get value(): number | bigint | null {
    if (this.high === 0n) return this.isKnown ? this.low : null
    const sum = this.high + BigInt(this.low)
    return sum < INT64_END ? sum : null
  }
}

/** Sums of the operators of a group. */
class GroupSum {
  private operators = 0
  private durNs = 0
  private waitNs = 0
  private innerWaitNs = 0
  private longestNs = -Infinity
  private readonly flop = new Amount()
  private readonly read = new Amount()
  private readonly written = new Amount()
  private isMax = false

  add({ facts, isMax }: SummedNode, durNs: number, waitNs: number, innerWaitNs: number): void {
    this.operators++
    this.durNs += durNs
    this.waitNs += waitNs
    this.innerWaitNs += innerWaitNs
    if (durNs > this.longestNs) this.longestNs = durNs
    this.flop.add(facts.flop)
    this.read.add(facts.bytes_read)
    this.written.add(facts.bytes_written)
    this.isMax ||= isMax
  }

  include(other: GroupSum): void {
    this.operators += other.operators
    this.durNs += other.durNs
    this.waitNs += other.waitNs
    this.innerWaitNs += other.innerWaitNs
    this.longestNs = Math.max(this.longestNs, other.longestNs)
    this.flop.include(other.flop)
    this.read.include(other.read)
    this.written.include(other.written)
    this.isMax ||= other.isMax
  }

  row(phase: Phase | null, group: Group): NewRow<'operator_sum'> {
    return {
      phase,
      ...group,
      operators: this.operators,
      dur_ns: this.durNs,
      wait_ns: this.waitNs,
      inner_wait_ns: this.innerWaitNs,
      longest_ns: this.longestNs,
      flop: this.flop.value,
      bytes_read: this.read.value,
      bytes_written: this.written.value,
      bytes_are_max: this.isMax,
    }
  }
}

/** What a sum needs of a node. */
export interface SummedNode {
  readonly facts: NodeFacts
  readonly isMax: boolean
}

/** Sums by number of their group. */
type Sums = (GroupSum | undefined)[]

/**
 * Collects rows of `operator_sum`: rows of `operator`, summed up by the phase of their call, role, op, type and backend. Operators may
 * come before their call: sums of calls without a phase wait for it.
 */
export class OperatorSumTable {
  private readonly groups: Group[] = []
  private readonly numbers = new Map<string, number>()
  /** By node: numbers of groups by backend. */
  private readonly ofNodes = new DefaultMap<SummedNode, Map<string, number>>(() => new Map())
  /** Codes of phases by call. */
  private phases = new Uint8Array(0)
  /** By code of the phase. */
  private readonly byPhase: readonly Sums[] = PHASE_CODES.map(() => [])
  private readonly waiting = new DefaultMap<number, Sums>(() => [])

  constructor(private readonly tables: Tables) {}

  /** The phase of a call. */
  call(call: number, phase: Phase): void {
    if (call < 0 || call >= CALLS_MAX) return
    if (call >= this.phases.length) this.phases = resized(this.phases, Math.max(2 * this.phases.length, call + 1))
    this.phases[call] = PHASE_CODES.indexOf(phase)
  }

  /** Adds an operator. `call`: its number, -1 in none; `backend`: empty where it is not known. Times in ns. */
  add(call: number, node: SummedNode, backend: string, durNs: number, waitNs: number, innerWaitNs: number): void {
    const code = this.phases[call] ?? 0
    const sums = code > 0 || call < 0 ? this.byPhase[code]! : this.waiting.of(call)
    sumOf(sums, this.groupOf(node, backend)).add(node, durNs, waitNs, innerWaitNs)
  }

  /** Sums of calls whose phase is known by now no longer wait; nor do those of the oldest calls, if there are many. */
  settle(max = WAITING_MAX): void {
    for (const [call, sums] of this.waiting) {
      const code = this.phases[call] ?? 0
      if (code === 0 && this.waiting.size <= max) continue
      this.waiting.delete(call)
      for (const [group, sum] of sums.entries()) if (sum) sumOf(this.byPhase[code]!, group).include(sum)
    }
  }

  /** Adds the rows: all operators and calls are known. */
  finish(): void {
    this.settle(0)
    for (const [code, sums] of this.byPhase.entries()) {
      for (const [group, sum] of sums.entries())
        if (sum) this.tables.add('operator_sum', sum.row(PHASE_CODES[code]!, this.groups[group]!))
    }
  }

  private groupOf(node: SummedNode, backend: string): number {
    const ofNode = this.ofNodes.of(node)
    let number = ofNode.get(backend)
    if (number === undefined) {
      const { role, op, type } = node.facts
      const group = { role, op, type, backend: backend || null }
      const key = JSON.stringify(Object.values(group))
      number = this.numbers.get(key) ?? this.groups.push(group) - 1
      this.numbers.set(key, number)
      ofNode.set(backend, number)
    }
    return number
  }
}

function sumOf(sums: Sums, group: number): GroupSum {
  let sum = sums[group]
  if (!sum) {
    sum = new GroupSum()
    putAt(sums, group, sum, undefined)
  }
  return sum
}
