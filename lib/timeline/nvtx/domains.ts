import type { Arg } from '../../model/args.ts'
import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import { Inferred } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { I64_MAX } from '../../model/limits.ts'
import type { NvtxEvent, NvtxNameEvent, NvtxPayload } from '../../model/nvtx-events.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { labelOf } from '../labels.ts'
import { OpenSlices } from '../nested.ts'
import type { Lanes } from '../tracks.ts'

interface Domain {
  readonly uuid: number
  /** undefined: NVTX's default domain. */
  readonly name: string | undefined
  readonly threads: Map<number, OpenSlices>
  readonly lanes: Lanes
}

/** The NVTX group: the ranges and marks of a program, domain by domain. */
export class Domains {
  private readonly domains: DefaultMap<number, Domain> = new DefaultMap((id) => {
    const { tracks, names } = this.context
    const name = id === 0 ? undefined : names.text(id)
    const uuid = tracks.add('nvtxDomain', { domain: name, nth: this.domains.size })
    return { uuid, name, threads: new Map(), lanes: tracks.lanes('nvtxRanges', {}, true, uuid) }
  })
  /** By number: ranges without an end so far, and ends that came before their start. */
  private readonly started = new Map<number, NvtxEvent>()
  private readonly ended = new Map<number, NvtxEvent>()
  private namesTrack = 0
  /** Threads so far, of all domains. */
  private threads = 0
  private lastNs = -Infinity

  constructor(private readonly context: TrackContext) {}

  place(event: NvtxEvent): void {
    const { what, atNs, tid, range } = event
    this.lastNs = Math.max(this.lastNs, atNs)
    switch (what) {
      case 'push':
        return this.thread(event).begin(atNs, this.label(event))
      case 'mark':
        return this.thread(event).instant(atNs, this.label(event))
      case 'pop': {
        const row = this.thread(event)
        if (row.depth === 0) {
          return this.issue('end-without-start', `thread ${tid} pops an NVTX range that it never pushed`, atNs)
        }
        return row.end(atNs)
      }
      case 'start':
      case 'end': {
        const [own, other] = what === 'start' ? [this.started, this.ended] : [this.ended, this.started]
        const partner = other.get(range)
        if (!partner) own.set(range, event)
        else this.span(...(what === 'start' ? ([event, partner] as const) : ([partner, event] as const)))
        other.delete(range)
      }
    }
  }

  /** Draws the naming of an object as an instant: no other event of the object is drawn. */
  name({ what, handle, name, atNs }: NvtxNameEvent): void {
    const { make, tracks, writer, detail } = this.context
    if (this.namesTrack === 0) this.namesTrack = tracks.add('nvtxNames', {})
    const shown = /[dD]evice$/.test(what) ? `${handle}` : `0x${handle.toString(16)}`
    const extra = [make.word('object', what), make.text('handle', shown), make.name('name', name)]
    const title = `${what} ${shown}: ${make.names.text(name)}`
    writer.instant(this.namesTrack, atNs, labelOf(title, 'nvtx', detail === 'names' ? undefined : extra))
  }

  /** Ends all open ranges at the last known time, and reports them. */
  finish(): void {
    for (const { name = 'default domain', threads } of this.domains.values()) {
      for (const [tid, row] of threads) {
        if (row.depth === 0) continue
        const ranges = row.depth === 1 ? '1 range is' : `${row.depth} ranges are`
        const detail = `${ranges} never popped by thread ${tid} (${name}): drawn up to the last NVTX event`
        this.issue('range-without-end', detail, this.lastNs)
        while (row.depth > 0) row.end(this.lastNs)
      }
    }
    for (const start of this.started.values()) this.span(start, undefined)
    for (const { range, atNs } of this.ended.values()) {
      this.issue('end-without-start', `NVTX range ${range} ends that never started`, atNs)
    }
    this.started.clear()
    this.ended.clear()
  }

  /** Draws a range of the process in the first row of its domain that is free. */
  private span(start: NvtxEvent, end: NvtxEvent | undefined): void {
    const { make } = this.context
    const endNs = Math.max(start.atNs, end?.atNs ?? this.lastNs)
    const more = [make.int('range_id', start.range), make.int('tid', start.tid)]
    if (end && end.tid !== start.tid) more.push(make.int('end_tid', end.tid))
    if (!end) more.push(...make.inferred(Inferred.NoEnd))
    this.domains.of(start.domain).lanes.place(start.atNs, endNs, this.label(start, more))
  }

  private label({ message, domain, category, color, payload, json, tid }: NvtxEvent, more?: readonly Arg[]): Label {
    const { make, detail } = this.context
    const name = message === 0 ? make.names.id('(no message)') : message
    if (detail === 'names') return labelOf(name, 'nvtx')
    const extra: Arg[] = domain === 0 ? [] : [make.name('domain', domain)]
    if (category !== 0) extra.push(make.name('category', category))
    if (color >= 0) extra.push(make.word('color', `#${(color & 0xffffff).toString(16).padStart(6, '0')}`))
    if (payload) extra.push(...this.payload(payload))
    if (json !== undefined) extra.push(make.text('payload', json))
    if (more) extra.push(...more)
    else if (detail === 'full') extra.push(make.int('tid', tid))
    return labelOf(name, 'nvtx', extra)
  }

  private payload({ type, value }: NvtxPayload): Arg[] {
    const { make } = this.context
    const typed = make.word('payload_type', type)
    if (value === undefined) return [typed]
    // Integers of trace_processor are at most 2^63 - 1.
    if (typeof value === 'bigint') {
      return [value > I64_MAX ? make.text('payload', `${value}`) : make.arg('payload', { big: value }), typed]
    }
    const isReal = type === 'f64' || type === 'f32'
    return [isReal ? make.double('payload', value) : make.int('payload', value), typed]
  }

  private thread(event: NvtxEvent): OpenSlices {
    const domain = this.domains.of(event.domain)
    const { tid, thread } = event
    return getOrMake(domain.threads, tid, () => {
      const { tracks, names, writer } = this.context
      const subject = { thread: names.text(thread), tid, domain: domain.name, nth: this.threads++ }
      return new OpenSlices(writer, () => tracks.add('nvtxThread', subject, 0, domain.uuid))
    })
  }

  private issue(code: IssueCode, detail: string, atNs: number): void {
    this.context.report(issueOf(code, detail, { byte: 0 }, atNs, ['nvtx']))
  }
}
