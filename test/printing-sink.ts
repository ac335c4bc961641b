import { type ConvertOptions, type Input, Names } from '../lib/index.ts'
import { type ArgFields, jsonOf } from '../lib/model/args.ts'
import type { Clock } from '../lib/model/events.ts'
import { traceOf } from '../lib/pipeline/convert.ts'
import { withKnown } from '../lib/read/index.ts'
import type { Label } from '../lib/sink/label.ts'
import type { Track } from '../lib/sink/track.ts'
import type { Writer } from '../lib/sink/writer.ts'

/**
 * What the timeline draws, a line for each draw, without a trace and without trace_processor:
 *
 *     worker 0 | 0–100 Qcur MUL_MAT {layer: 3}
 *     Ranges/thread 7 | 200–300 outer > inner   `inner` lies within `outer`
 *     Ranges/thread 8 | 250–350 inner →5        the arrow 5 joins it with other slices
 *     Issues | 360 end without a start          an instant
 *     cache misses | 5 = 0.25                   a sample of a counter
 */

/** What is printed. */
export interface Shown {
  /** Rows, by their paths below the root; by default all. */
  readonly rows?: RegExp
  /** Keys of arguments; by default none. */
  readonly args?: readonly string[] | 'all'
  /** Times since the clock's zero; by default since the beginning of the first input. */
  readonly isAbsolute?: boolean
}

/** The lines of a trace of these inputs, row by row and in order of time. */
export async function drawn(
  inputs: Input | readonly Input[],
  options: ConvertOptions = {},
  shown: Shown = {},
): Promise<string[]> {
  const names = new Names()
  const sink = new PrintingSink(names, shown)
  for await (const _ of traceOf([inputs].flat() as readonly Input[], withKnown(options), names, sink));
  return sink.lines()
}

/** The end of what has none. Times may be negative: before the beginning of the first input. */
const INSTANT = -Infinity

interface Draw {
  readonly startNs: number
  endNs: number
  text: string
}

interface Row {
  readonly path: string
  readonly draws: Draw[]
  readonly open: Draw[]
}

/** A writer whose output is text. It throws where trace_processor would find a fault: no such row, no such slice, overlaps. */
export class PrintingSink implements Writer {
  readonly size = 0
  private readonly rows = new Map<number, Row>()
  private readonly readings: string[] = []
  private originNs: bigint | undefined
  private arrows = 0

  constructor(
    private readonly names: Names,
    private readonly shown: Shown = {},
  ) {}

  /** What was drawn. */
  lines(): string[] {
    const rows = [...this.rows.values()].filter(({ path }) => this.shown.rows?.test(path) ?? true)
    const zeroNs = this.shown.isAbsolute ? this.originNs! : 0n
    return [...this.readings, ...rows.flatMap((row) => linesOf(row, zeroNs))]
  }

  get draws(): number {
    return [...this.rows.values()].reduce((sum, { draws }) => sum + draws.length, 0)
  }

  origin(_: unknown, originNs: bigint): void {
    this.originNs ??= originNs
  }

  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void {
    this.readings.push(readings.map(({ clock, ns }) => `${clock} ${ns}`).join(' = '))
  }

  track({ uuid, parent, name, rank }: Track): void {
    const group = this.rows.get(parent)
    if (parent !== 0 && !group) throw new Error(`${name} is below an unknown row`)
    const { draws = [], open = [] } = this.rows.get(uuid) ?? {}
    // Of the first root, every path would begin with the same words.
    const path = group ? `${group.path}${group.path && '/'}${name}` : rank === 0 ? '' : name
    this.rows.set(uuid, { path, draws, open })
  }

  begin(track: number, startNs: number, label: Label): void {
    const { draws, open } = this.row(track)
    const within = open.map(({ text }) => `${text.replace(/ [{→].*/, '')} > `).at(-1) ?? ''
    const draw = { startNs, endNs: NaN, text: within + this.text(label) }
    draws.push(draw)
    open.push(draw)
  }

  end(track: number, endNs: number): void {
    const { path, open } = this.row(track)
    const draw = open.pop()
    if (!draw || endNs < draw.startNs) throw new Error(`${path}: an end without a begin at ${endNs}`)
    draw.endNs = endNs
  }

  slice(track: number, startNs: number, endNs: number, label: Label, extra = label.extra): void {
    this.begin(track, startNs, { ...label, extra })
    this.end(track, endNs)
  }

  instant(track: number, atNs: number, label: Label): void {
    this.row(track).draws.push({ startNs: atNs, endNs: INSTANT, text: this.text(label) })
  }

  counter(track: number, atNs: number, value: number): void {
    this.row(track).draws.push({ startNs: atNs, endNs: INSTANT, text: `= ${value}` })
  }

  arrow(from: number, to: number, atNs: number): void {
    const [out, into] = [from, to].map((track) => this.around(track, atNs)) as [Draw, Draw]
    if (out.startNs > into.startNs) throw new Error(`an arrow from ${out.text} to the earlier ${into.text}`)
    const id = ++this.arrows
    out.text += ` →${id}`
    into.text += ` →${id}|`
  }

  attributes(): void {}

  finish(): void {
    for (const { path, open } of this.rows.values()) if (open.length > 0) throw new Error(`${path}: no end`)
  }

  take(): Uint8Array {
    return new Uint8Array()
  }

  /** The innermost slice of a row at a time, as trace_processor finds it. */
  private around(track: number, atNs: number): Draw {
    const { path, draws } = this.row(track)
    const draw = draws.findLast(({ startNs, endNs }) => startNs <= atNs && endNs > atNs)
    if (!draw) throw new Error(`${path}: an arrow at ${atNs}, where no slice is`)
    return draw
  }

  private row(track: number): Row {
    const row = this.rows.get(track)
    if (!row) throw new Error(`a draw on the unknown row ${track}`)
    return row
  }

  private text({ name, args, extra = [], flows = [], flowEnds = [], arrowsOut = [], arrowsIn = [] }: Label): string {
    const keys = this.shown.args ?? []
    const shown = [...(args?.args ?? []), ...extra]
      .map((arg) => [this.names.text(arg.key), this.valueOf(arg)] as const)
      .filter(([key]) => keys === 'all' || keys.includes(key))
    const values = shown.length > 0 ? ` {${shown.map(([key, value]) => `${key}: ${value}`).join(', ')}}` : ''
    const arrows = [
      ...[...flows, ...arrowsOut].map((id) => ` →${id}`),
      ...[...flowEnds, ...arrowsIn].map((id) => ` →${id}|`),
    ]
    return `${typeof name === 'number' ? this.names.text(name) : name}${values}${arrows.join('')}`
  }

  private valueOf({ int, double, big, pointer, name, text, json }: ArgFields): string {
    if (name !== undefined) return this.names.text(name)
    if (pointer !== undefined) return `0x${pointer.toString(16)}`
    if (json !== undefined) return typeof json === 'number' ? this.names.text(json) : jsonOf(json)
    return `${int ?? double ?? big ?? text}`
  }
}

function linesOf({ path, draws }: Row, zeroNs: bigint): string[] {
  const sorted = draws.toSorted((a, b) => a.startNs - b.startNs || b.endNs - a.endNs)
  const ends: number[] = []
  const at = (ns: number) => zeroNs + BigInt(ns)
  return sorted.map(({ startNs, endNs, text }) => {
    if (endNs === INSTANT) return `${path} | ${at(startNs)} ${text}`
    while (ends.length > 0 && ends.at(-1)! <= startNs) ends.pop()
    if (ends.length > 0 && ends.at(-1)! < endNs) throw new Error(`${path}: ${startNs} ${text} overlaps another slice`)
    ends.push(endNs)
    return `${path} | ${at(startNs)}–${at(endNs)} ${text}`
  })
}
