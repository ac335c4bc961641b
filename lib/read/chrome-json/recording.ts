import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { LeftOut, PERFETTO_READS_IT } from '../../model/left-out.ts'
import type { Names } from '../../model/names.ts'
import { plural } from '../../model/units.ts'
import { containing, contentsOf } from '../common/holdings.ts'
import { ArgReader } from './args.ts'
import { type ArrowEnd, Runs } from './arrows.ts'
import { Fields, type Place } from './fields.ts'
import { FlowReader } from './flows.ts'
import { GpuActivity } from './gpu.ts'
import { type HeldSlice, Nesting, type NestingTaker, NO_CATEGORY, sliceOf } from './nesting.ts'
import { Operations } from './operations.ts'
import type { Edge } from './pairs.ts'
import { type RowKind, Rows } from './rows.ts'
import { type EventScanner, Field } from './scanner.ts'
import { type EngineBatch, EngineSteps } from './steps.ts'

/** Events that are not drawn: their phases and names. */
const PHASES = [
  ['P', 'samples (P)'],
  ['NOD', 'object events (N, O, D)'],
  ['vV', 'memory dumps (v, V)'],
  ['()', 'context events'],
  ['c', 'clock synchronizations (c)'],
] as const

/** Converts the events of a trace to those of the model, one by one. */
export class Recording {
  private readonly rows: Rows
  private readonly fields: Fields
  private readonly args: ArgReader
  private readonly gpu: GpuActivity
  private readonly steps: EngineSteps
  private readonly taker: NestingTaker
  private readonly nesting: Nesting
  private readonly operations: Operations
  private readonly flows: FlowReader
  private readonly runs = new Runs()
  private readonly leftOut = new LeftOut()
  private out: TraceEvent[] = []
  private byte = 0
  /** Slices by id of the category; 0: without one. */
  private readonly slices = new DefaultMap<number, { count: number }>(() => ({ count: 0 }))
  private instants = 0
  private samples = 0
  private late = { count: 0, firstByte: 0, firstNs: 0 }

  constructor(
    private readonly names: Names,
    everything: boolean,
  ) {
    this.rows = new Rows(names)
    this.fields = new Fields(names, this.rows, (code, detail) => this.issue(code, detail, this.byte))
    this.args = new ArgReader(names, everything)
    this.gpu = new GpuActivity(names, this.rows, this.args, this.runs, (code, detail) =>
      this.issue(code, detail, this.byte),
    )
    this.steps = new EngineSteps(names, this.rows, this.gpu)
    this.flows = new FlowReader(this.rows, this.gpu, this.runs)
    this.taker = this.makeTaker()
    this.nesting = new Nesting(this.taker, this.runs)
    this.operations = new Operations(names, this.rows, this.taker)
  }

  /** Sets the origin, in nanoseconds of the file's times and of the trace's. `isKineto`: PyTorch's profiler wrote the file. */
  begin(ownNs: bigint, originNs: bigint, isKineto: boolean): void {
    this.rows.isKineto = isKineto
    this.fields.begin(ownNs, originNs)
  }

  /** The events made since the last call. */
  take(): TraceEvent[] {
    const { out } = this
    this.out = []
    return out
  }

  issue(code: IssueCode, detail: string, byte: number): void {
    this.out.push(issueOf(code, detail, { byte }, Math.max(0, this.fields.guard.lastNs)))
  }

  /** An event that begins at a byte of the document. */
  event(event: EventScanner, byte: number): void {
    this.byte = byte
    const phase = String.fromCharCode(event.firstByte(Field.ph))
    switch (phase) {
      case 'X':
        return this.complete(event)
      case 'B':
      case 'E':
        return this.edge(event, phase === 'B' ? 'begin' : 'end')
      case 'i':
      case 'I':
      case 'R':
        return this.instant(event)
      case 'C':
        return this.counter(event)
      case 's':
      case 't':
      case 'f':
        return this.flow(event, phase)
      case 'M':
        return this.metadata(event)
      case 'b':
      case 'e':
      case 'n':
      case 'S':
      case 'F':
      case 'T':
      case 'p':
        return this.operation(event, ASYNC[phase])
      case '\0':
        return this.issue('json-no-phase', 'expected a "ph", found none', byte)
      default:
        this.leaveOut(phase)
    }
  }

  /** All events that were held back, and facts about the file. */
  *finish(): Generator<TraceEvent[]> {
    this.closeRest()
    this.nesting.finish()
    this.reportLate()
    yield this.take()
    yield* this.steps.calls()
    yield* this.gpu.calls()
    this.flows.leaveOut(this.leftOut)
    yield this.leftOut.events()
    const { byKeyOnly } = this.runs
    yield [{ kind: 'facts', ...containing(this.contents() || 'no slices') }]
    if (byKeyOnly > 0) yield [{ kind: 'facts', attributes: { arrows_by_id_only: byKeyOnly } }]
  }

  /** GPU work, calls and slices; of a file without GPU work, all of it by kind. */
  private contents(): string {
    const { kernel, memcpy, memset, call } = this.gpu.counts
    const slicesOf = (category: string) => this.slices.get(this.names.id(category))?.count ?? 0
    const all = [...this.slices.values()].reduce((sum, { count }) => sum + count, 0)
    const isOfGpu = kernel + memcpy + memset > 0
    const kinds = isOfGpu ? [] : KINDS.map(([category, noun]) => [slicesOf(category), noun] as const)
    return contentsOf([
      [kernel, 'kernel'],
      [memcpy, 'memory copy'],
      [memset, 'memory set'],
      [call, 'GPU API call'],
      ...kinds,
      [
        kinds.reduce((rest, [count]) => rest - count, all),
        kinds.some(([count]) => count > 0) ? 'other slice' : 'slice',
      ],
      [isOfGpu ? 0 : this.instants, 'instant'],
      [isOfGpu ? 0 : this.samples, 'counter value'],
    ])
  }

  /** Counts an event of a phase that is not drawn. */
  private leaveOut(phase: string): void {
    const [, what] = PHASES.find(([phases]) => phases.includes(phase)) ?? []
    this.leftOut.add(what ?? `events of phase ${JSON.stringify(phase)}`, 1, PERFETTO_READS_IT)
  }

  private complete(event: EventScanner): void {
    const startNs = this.fields.timeOf(event)
    if (startNs === undefined) return
    const place = this.fields.placeOf(event, startNs, startNs + this.fields.durationOf(event, startNs))
    if (place.endNs > this.fields.lastNs) this.fields.lastNs = place.endNs
    this.args.begin(event)
    const { route } = place.category
    const ends = this.flows.ofSlice(event, startNs, this.byte)
    switch (route) {
      case 'api':
        return this.gpu.call(place, ends)
      case 'kernel':
      case 'memcpy':
      case 'memset':
      case 'sync':
        if (!this.args.has('stream') && !this.args.has('device')) return this.slice(place, 'thread', ends)
        this.flows.atGpuWork(ends)
        this.out.push(route === 'sync' ? this.gpu.sync(place) : this.gpu.work(route, place))
        return
      case 'operators':
        this.gpu.host(place.pid)
        return this.slice(place, 'thread', ends)
      default:
        return this.slice(place, route, ends)
    }
  }

  private slice(place: Place, kind: RowKind, arrows: readonly ArrowEnd[] | undefined): void {
    const { name, category, pid, tid, startNs, endNs } = place
    const batch = this.steps.add(place, this.args)
    const own = this.args.all()
    this.nesting.add({
      kind: 'own-slice',
      track: this.rows.thread(kind, pid, tid),
      name,
      category: category.name ?? NO_CATEGORY,
      startNs,
      endNs,
      args: batch ? [...(own ?? []), ...this.countsOf(batch)] : own,
      order: this.byte,
      arrows,
      flows: undefined,
      flowEnds: undefined,
    })
  }

  /** Gets pairs, and slices in order. */
  private makeTaker(): NestingTaker {
    return {
      range: (track, begin, endNs, more) => this.nesting.add(sliceOf(track, begin, endNs, more)),
      mark: (track, edge) => this.mark(track, edge),
      issue: (code, detail, { byte, atNs }) => this.out.push(issueOf(code, detail, { byte }, atNs)),
      late: ({ byte, atNs }) => {
        if (this.late.count++ === 0) this.late = { count: 1, firstByte: byte, firstNs: atNs }
      },
      pass: (slices) => this.pass(slices),
      placeOf: (track) => this.rows.placeOf(track),
      otherAt: (thread, atNs) => this.gpu.callAt(thread, atNs),
      loose: (thread, arrow) => this.flows.countLoose(thread, arrow),
    }
  }

  /** A begin, an end or a mark, which waits for earlier ones. */
  private edgeOf(event: EventScanner, what: Edge['what'], place: Place, id = 0): Edge {
    this.args.begin(event)
    const { category, name, startNs: atNs } = place
    return {
      what,
      atNs,
      byte: this.byte,
      name,
      isNamed: name !== this.fields.noName,
      category: category.name,
      args: this.args.all(),
      arrows: what === 'begin' ? this.flows.ofSlice(event, atNs, this.byte) : undefined,
      id,
      pid: place.pid,
    }
  }

  private edge(event: EventScanner, what: 'begin' | 'end'): void {
    const place = this.fields.placeAt(event)
    if (place) this.nesting.edge(this.rows.thread('thread', place.pid, place.tid), this.edgeOf(event, what, place))
  }

  private instant(event: EventScanner): void {
    const place = this.fields.placeAt(event)
    if (!place) return
    const { name, category, pid, tid, startNs: atNs } = place
    const isMemory = category.route === 'memory'
    this.args.begin(event)
    const track = this.rows.thread(isMemory ? 'memory' : 'thread', pid, tid)
    this.mark(track, { name, category: category.name, atNs, args: this.args.all() })
    if (isMemory) this.memory(atNs)
  }

  /** `[memory]` instants contain the memory that PyTorch's allocators have after each change. */
  private memory(atNs: number): void {
    const { args, names } = this
    const where = args.whole('Device Type', 0) === 0 ? 'CPU' : `GPU ${args.whole('Device Id', 0)}`
    for (const what of ['Allocated', 'Reserved']) {
      const value = args.whole(`Total ${what}`, -1)
      if (value < 0) continue
      const name = names.id(`${where}: memory ${what.toLowerCase()}`)
      this.samples++
      this.out.push({ kind: 'counter', name, unit: 'bytes', atNs, value })
    }
  }

  private mark(track: number, { name, category, atNs, args }: Pick<Edge, 'name' | 'category' | 'atNs' | 'args'>): void {
    this.define(track)
    this.instants++
    this.out.push({ kind: 'own-instant', track, name, category: category ?? NO_CATEGORY, atNs, args })
  }

  private counter(event: EventScanner): void {
    const place = this.fields.placeAt(event)
    if (!place) return
    const { name, pid, startNs: atNs } = place
    const title = `${this.names.text(name)}${event.has(Field.id) ? ` ${this.fields.textOf(event, Field.id)}` : ''}`
    this.args.begin(event)
    const isOnly = this.args.count === 1
    const before = this.out.length
    this.args.eachNumber((key, value) => {
      const track = this.rows.other(pid, isOnly ? title : `${title}: ${key}`, 'counter')
      this.define(track)
      this.samples++
      this.out.push({ kind: 'own-sample', track, atNs, value })
    })
    if (this.out.length === before) this.leftOut.add('counters without a number')
  }

  private operation(event: EventScanner, what: Edge['what']): void {
    const place = this.fields.placeAt(event)
    if (place) this.operations.add(this.edgeOf(event, what, place, this.flows.operationOf(event, place)))
  }

  private flow(event: EventScanner, phase: 's' | 't' | 'f'): void {
    if (!(event.has(Field.id) || event.has(Field.id2))) return this.leftOut.add('arrows without an id')
    const atNs = this.fields.timeOf(event)
    if (atNs === undefined || this.flows.isOfGpu(event, this.fields.categoryOf(event), atNs)) return
    const place = this.fields.placeOf(event, atNs, atNs)
    const end = this.flows.endOf(event, phase, place, this.byte)
    if (end) this.nesting.arrow(this.rows.threadKey(place.pid, place.tid), end)
  }

  private metadata(event: EventScanner): void {
    const { pid, tid } = this.fields.placeOf(event, 0, 0)
    const what = this.fields.textOf(event, Field.name)
    const { rows, args, out } = this
    args.begin(event)
    if (what === 'process_name') out.push(...rows.nameProcess(pid, args.text('name')))
    else if (what === 'thread_name') out.push(...rows.nameThread(pid, tid, args.text('name')))
    else if (what === 'process_labels') out.push(...rows.labelProcess(pid, args.text('labels')))
    else if (what === 'process_sort_index') out.push(...rows.sortProcess(pid, sortIndexIn(args)))
    else if (what === 'thread_sort_index') out.push(...rows.sortThread(pid, tid, sortIndexIn(args)))
  }

  private countsOf({ counts, phase }: EngineBatch): Arg[] {
    const { names } = this
    const args = Object.entries(counts).map(([key, int]) => ({ key: names.id(key), int }))
    return [{ key: names.id('phase'), name: names.id(phase) }, ...args]
  }

  private pass(slices: readonly HeldSlice[]): void {
    this.define(slices[0]!.track)
    for (const slice of slices) {
      this.slices.of(slice.category ?? 0).count++
      this.out.push(slice)
    }
  }

  private define(track: number): void {
    for (const definition of this.rows.definitions(track)) this.out.push(definition)
  }

  private closeRest(): void {
    this.operations.pair(Infinity)
    let open = 0
    const inferred = { key: this.names.id('inferred'), name: this.names.id('end: the last event of the file') }
    for (const [row, begin] of [...this.nesting.pairAll(), ...this.operations.rest()]) {
      open++
      this.taker.range(row, begin, this.fields.lastNs, [inferred])
    }
    if (open === 0) return
    this.issue(
      'range-without-end',
      `${plural(open, 'slice')} without an end: drawn up to the last event of the file`,
      this.byte,
    )
  }

  private reportLate(): void {
    const { count, firstByte, firstNs } = this.late
    if (count === 0) return
    const detail = `${count} come after later ones that are paired already; the first one is here`
    this.out.push(issueOf('late-begin-or-end', detail, { byte: firstByte }, firstNs))
  }
}

/** Categories of PyTorch's profiler on the CPU. */
const KINDS = [
  ['cpu_op', 'operator'],
  ['python_function', 'Python function'],
  ['user_annotation', 'annotation'],
] as const
/** The place among others that an event of metadata states. */
const sortIndexIn = (args: ArgReader) => args.whole('sort_index', 0)
const ASYNC = { b: 'begin', e: 'end', n: 'mark', S: 'begin', F: 'end', T: 'mark', p: 'mark' } as const
