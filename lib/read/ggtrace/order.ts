import { MinHeap } from '../../bytes/min-heap.ts'
import { BlockKind } from '../../log/ggtrace-layout.ts'
import { getOrMake } from '../../model/default-map.ts'
import { plural } from '../../model/units.ts'
import { grouped } from '../common/holdings.ts'
import { type Block, keepBlock, type Report } from './blocks.ts'

/** A gap of one writer's sequence: missing blocks, `to` inclusive. */
interface Gap {
  from: number
  to: number
}

interface WriterState {
  next: number
  dropped: number
  readonly gaps: Gap[]
}

/** Most gaps that are kept per writer, to distinguish late blocks from repeated ones. */
const GAPS_MAX = 16

/** Checks that each writer's blocks are there once and in order, and counts the records that writers dropped. */
export class Writers {
  /** Dropped records, by the blocks' counts. */
  dropped = 0
  /** The log has the last part of the run only: missing first blocks of a writer are no loss. */
  isRing = false
  /** It has parts of the run only: missing blocks of events are no loss. */
  mayHaveGaps = false
  private readonly states = new Map<number, WriterState>()

  constructor(private readonly report: Report) {}

  /** Checks a block; false if it is a repeated one. */
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
    if (sequence > state.next && !(this.mayHaveGaps && block.kind === BlockKind.Events)) {
      const lost = sequence - state.next
      const blocks = lost === 1 ? '1 block of it is' : `${lost} blocks of it are`
      const detail = `expected block ${state.next} of writer ${writer}, found block ${sequence}: ${blocks} lost`
      this.report('lost-blocks', detail, byte)
      state.gaps.push({ from: state.next, to: sequence - 1 })
      if (state.gaps.length > GAPS_MAX) state.gaps.shift()
    }
    state.next = sequence + 1
    if (dropped > state.dropped) {
      const detail = `writer ${writer} had no space for ${plural(dropped - state.dropped, 'record')}, ${grouped(dropped)} so far`
      this.report('dropped-records', detail, byte)
      this.dropped += dropped - state.dropped
      state.dropped = dropped
    }
    return true
  }

  /** A damaged block, which is reported already, is not lost as well if its header is plausible. */
  acceptDamaged({ writer, sequence }: Block): void {
    const state = this.state(writer)
    if (sequence === state.next) state.next++
  }

  private state(writer: number, first = 0): WriterState {
    return getOrMake(this.states, writer, () => ({ next: first, dropped: 0, gaps: [] }))
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

/** Most bytes of blocks that wait for definitions; with more, the definitions are missing. */
const WAITING_BYTES_MAX = 64 << 20
/** Memory of a waiting block without its bytes, approximately. */
const ENTRY_BYTES = 400

interface Entry {
  readonly block: Block
  /** Counts all blocks that waited. */
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

/** Event blocks that are ahead of the definitions that they need. Each block costs a few steps, however many wait. */
export class Waiting {
  /** Work so far: visited blocks and places of the heap. */
  steps = 0
  private readonly queues = new Map<number, Queue>()
  /** Writers by the definitions that their first waiting block needs; may also contain outdated entries. */
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

  /** Does a block of the writer wait? Then its next one has to. */
  has(writer: number): boolean {
    return this.queues.has(writer)
  }

  /** Does the block have to wait? If so, it is kept. An open block has no `needs`: the next one of the writer has. */
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

  /** Removes the blocks that need at most `defined` definitions, each writer's in order, in the order of the file. */
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
