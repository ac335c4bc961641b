import { BlockKind } from '../../log/ggtrace-layout.ts'
import { type Block, keepBlock, type Report } from './blocks.ts'

/** A gap of one writer's sequence: blocks that are missing, from … to inclusive. */
interface Gap {
  from: number
  to: number
}

interface WriterState {
  next: number
  dropped: number
  readonly gaps: Gap[]
}

/** Gaps that are remembered per writer, to tell late blocks from repeated ones. */
const GAPS_MAX = 16

/** Watches that every writer's blocks come once and in order, and what the writers say they dropped. */
export class Writers {
  /** Records that were dropped, as far as blocks tell. */
  dropped = 0
  /** Is it a log of the last part only? Then a writer's first blocks may be gone, and are no loss. */
  isRing = false
  private readonly states = new Map<number, WriterState>()

  constructor(private readonly report: Report) {}

  /** Takes note of a block; false if it was there before. */
  accept(block: Block): boolean {
    const { writer, sequence, byte, dropped } = block
    const state = this.state(writer, this.isRing && block.kind === BlockKind.Events ? sequence : 0)
    if (sequence < state.next) {
      const isLate = takeFrom(state.gaps, sequence)
      const code = isLate ? 'block-out-of-order' : 'repeated-block'
      const found = `found block ${sequence} after block ${state.next - 1}`
      this.report(code, `${found} of writer ${writer}${isLate ? '' : '; left out'}`, byte)
      return isLate
    }
    if (sequence > state.next) {
      const lost = sequence - state.next
      const blocks = lost === 1 ? '1 block of it is' : `${lost} blocks of it are`
      const detail = `expected block ${state.next} of writer ${writer}, found block ${sequence}: ${blocks} lost`
      this.report('lost-blocks', detail, byte)
      state.gaps.push({ from: state.next, to: sequence - 1 })
      if (state.gaps.length > GAPS_MAX) state.gaps.shift()
    }
    state.next = sequence + 1
    if (dropped > state.dropped) {
      const detail = `writer ${writer} had no space for ${dropped - state.dropped} records, ${dropped} so far`
      this.report('lost-records', detail, byte)
      this.dropped += dropped - state.dropped
      state.dropped = dropped
    }
    return true
  }

  /** A damaged block was told already: it is not lost beside, if its header is to be believed. */
  acceptDamaged({ writer, sequence }: Block): void {
    const state = this.state(writer)
    if (sequence === state.next) state.next++
  }

  private state(writer: number, first = 0): WriterState {
    let state = this.states.get(writer)
    if (!state) {
      state = { next: first, dropped: 0, gaps: [] }
      this.states.set(writer, state)
    }
    return state
  }
}

function takeFrom(gaps: Gap[], sequence: number): boolean {
  const index = gaps.findIndex(({ from, to }) => from <= sequence && sequence <= to)
  const gap = gaps[index]
  if (!gap) return false
  const rest = [
    { from: gap.from, to: sequence - 1 },
    { from: sequence + 1, to: gap.to },
  ]
  gaps.splice(index, 1, ...rest.filter(({ from, to }) => from <= to))
  return true
}

/** Memory that blocks waiting for definitions may take; more means that these will not come. */
const WAITING_BYTES_MAX = 64 << 20
/** What a waiting block takes beside its bytes, about. */
const ENTRY_BYTES = 400

interface Entry {
  readonly block: Block
  /** Place among the blocks that waited. */
  readonly serial: number
  needs: number
  /** The same writer's next block that waits. */
  next: Entry | undefined
}

/** The blocks of one writer that wait, in its order. */
interface Queue {
  head: Entry
  tail: Entry
}

/** Event blocks that came before the definitions that they need. Each block is looked at a few times, however many wait. */
export class Waiting {
  /** Work done so far: blocks and places of the heap that were looked at. */
  steps = 0
  private readonly queues = new Map<number, Queue>()
  /** Writers by what their first waiting block needs; what it needed before may be in it, too. */
  private readonly firsts = new MinHeap(() => this.steps++)
  private serials = 0
  private bytes = 0

  get isFull(): boolean {
    return this.bytes > WAITING_BYTES_MAX
  }

  /** The most definitions that a waiting block is known to need. */
  get needs(): number {
    let most = 0
    for (const { head } of this.queues.values()) {
      for (let entry: Entry | undefined = head; entry; entry = entry.next) {
        if (Number.isFinite(entry.needs)) most = Math.max(most, entry.needs)
      }
    }
    return most
  }

  /** Does the block have to wait? If so, it is kept. An open block does not know what it needs: its successor does. */
  hold(block: Block, defined: number): boolean {
    const { writer } = block
    const queue = this.queues.get(writer)
    if (queue?.tail.needs === Infinity) {
      queue.tail.needs = block.needs
      if (queue.tail === queue.head) this.firsts.push(block.needs, writer)
    }
    const needs = block.state === 'sealed' ? block.needs : Infinity
    if (needs <= defined && !queue) return false
    const entry: Entry = { block: keepBlock(block), serial: this.serials++, needs, next: undefined }
    if (queue) {
      queue.tail.next = entry
      queue.tail = entry
    } else {
      this.queues.set(writer, { head: entry, tail: entry })
      this.firsts.push(needs, writer)
    }
    this.bytes += bytesOf(entry)
    return true
  }

  /** Takes out the blocks that need no more than `defined` definitions, each writer's in order, in the order of the file. */
  release(defined: number): Block[] {
    const released: Entry[] = []
    while (this.firsts.least <= defined && this.firsts.size > 0) {
      const writer = this.firsts.pop()
      const queue = this.queues.get(writer)
      let entry: Entry | undefined = queue?.head
      for (; entry && entry.needs <= defined; entry = entry.next) {
        this.steps++
        this.bytes -= bytesOf(entry)
        released.push(entry)
      }
      if (!queue || entry === queue.head) continue
      if (entry) {
        queue.head = entry
        this.firsts.push(entry.needs, writer)
      } else this.queues.delete(writer)
    }
    return released.sort((a, b) => a.serial - b.serial).map(({ block }) => block)
  }
}

const bytesOf = ({ block }: Entry) => block.end - block.at + ENTRY_BYTES

/** Numbers with keys, of which the one with the least key comes first. */
class MinHeap {
  private readonly keys: number[] = []
  private readonly values: number[] = []

  /** `step` is called for every place that is looked at. */
  constructor(private readonly step: () => void) {}

  get size(): number {
    return this.keys.length
  }

  /** The least key; Infinity where there is none. */
  get least(): number {
    return this.keys[0] ?? Infinity
  }

  push(key: number, value: number): void {
    const { keys, values } = this
    let at = keys.length
    for (; at > 0; at = (at - 1) >>> 1) {
      this.step()
      const parent = (at - 1) >>> 1
      if (keys[parent]! <= key) break
      keys[at] = keys[parent]!
      values[at] = values[parent]!
    }
    keys[at] = key
    values[at] = value
  }

  /** Takes out the value with the least key; there must be one. */
  pop(): number {
    const { keys, values } = this
    const first = values[0]!
    const [key, value] = [keys.pop()!, values.pop()!]
    let at = 0
    for (let child = 1; child < keys.length; child = 2 * at + 1) {
      this.step()
      if (child + 1 < keys.length && keys[child + 1]! < keys[child]!) child++
      if (keys[child]! >= key) break
      keys[at] = keys[child]!
      values[at] = values[child]!
      at = child
    }
    if (keys.length > 0) {
      keys[at] = key
      values[at] = value
    }
    return first
  }
}
