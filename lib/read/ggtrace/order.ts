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
      const title = isLate ? 'block out of order' : 'repeated block'
      const found = `found block ${sequence} after block ${state.next - 1}`
      this.report(title, `${found} of writer ${writer}${isLate ? '' : '; left out'}`, byte)
      return isLate
    }
    if (sequence > state.next) {
      const lost = sequence - state.next
      const blocks = lost === 1 ? '1 block of it is' : `${lost} blocks of it are`
      const detail = `expected block ${state.next} of writer ${writer}, found block ${sequence}: ${blocks} lost`
      this.report('lost blocks', detail, byte)
      state.gaps.push({ from: state.next, to: sequence - 1 })
      if (state.gaps.length > GAPS_MAX) state.gaps.shift()
    }
    state.next = sequence + 1
    if (dropped > state.dropped) {
      const detail = `writer ${writer} had no space for ${dropped - state.dropped} records, ${dropped} so far`
      this.report('dropped records', detail, byte)
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
  needs: number
}

/** Event blocks that came before the definitions that they need, in the order of the file. */
export class Waiting {
  private entries: Entry[] = []
  /** The latest block that waits, by writer. */
  private readonly latest = new Map<number, Entry>()
  private bytes = 0

  get isFull(): boolean {
    return this.bytes > WAITING_BYTES_MAX
  }

  /** The most definitions that a waiting block is known to need. */
  get needs(): number {
    return this.entries.reduce((most, { needs }) => (Number.isFinite(needs) ? Math.max(most, needs) : most), 0)
  }

  /** Does the block have to wait? If so, it is kept. An open block does not know what it needs: its successor does. */
  hold(block: Block, defined: number): boolean {
    const before = this.latest.get(block.writer)
    if (before?.needs === Infinity) before.needs = block.needs
    const needs = block.state === 'sealed' ? block.needs : Infinity
    if (needs <= defined && !before) return false
    const entry = { block: keepBlock(block), needs }
    this.entries.push(entry)
    this.latest.set(block.writer, entry)
    this.bytes += block.end - block.at + ENTRY_BYTES
    return true
  }

  /** Takes out the blocks that need no more than `defined` definitions, each writer's in order. */
  release(defined: number): Block[] {
    if (this.entries.length === 0) return []
    const stuck = new Set<number>()
    const kept: Entry[] = []
    const released: Block[] = []
    for (const entry of this.entries) {
      const { block, needs } = entry
      if (needs > defined || stuck.has(block.writer)) {
        kept.push(entry)
        stuck.add(block.writer)
        continue
      }
      released.push(block)
      this.bytes -= block.end - block.at + ENTRY_BYTES
      if (this.latest.get(block.writer) === entry) this.latest.delete(block.writer)
    }
    this.entries = kept
    return released
  }
}
