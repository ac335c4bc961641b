import { DefaultMap } from '../model/default-map.ts'
import { lastTimeOf, type TraceEvent } from '../model/events.ts'
import type { GpuEvent } from '../model/gpu-events.ts'
import { issueOf } from '../model/issues.ts'
import type { JoinedProfile, KernelProfileEvent } from '../model/kernel-profiles.ts'
import type { Names } from '../model/names.ts'
import { shortKernelName } from '../read/common/cuda.ts'

/** Profiles of kernels of one name. */
interface OfName {
  /** By stream, in order of the profile. */
  readonly streams: Map<number, KernelProfileEvent[]>
  /** By grid and block. */
  readonly shapes: Map<string, KernelProfileEvent>
}

/**
 * Adds to the kernels of a log what Nsight Compute measured of them: the n-th launch of a name on a stream is the n-th profiled one, if grid
 * and block are the same; else a launch of that name with the same grid and block.
 */
export class ProfileStage {
  private readonly byName = new DefaultMap<string, OfName>(() => ({ streams: new Map(), shapes: new Map() }))
  /** The same by the function alone, without namespaces and arguments. */
  private readonly byFunction = new DefaultMap<string, OfName>(() => ({ streams: new Map(), shapes: new Map() }))
  /** Kernels so far, by process, name and stream. */
  private readonly counts = new DefaultMap<string, { count: number }>(() => ({ count: 0 }))
  /** By ids of name and signature. */
  private readonly known = new Map<string, OfName | undefined>()
  private readonly joined = new Set<KernelProfileEvent>()
  private kernels = 0
  private lastNs = 0

  constructor(
    private readonly profiles: readonly KernelProfileEvent[],
    private readonly names: Names,
  ) {
    for (const profile of profiles) this.add(profile)
  }

  take(batch: TraceEvent[]): TraceEvent[] {
    if (this.profiles.length === 0) return batch
    return batch.map((event) => {
      if (event.kind !== 'gpu' || event.what !== 'kernel') return event
      this.kernels++
      this.lastNs = Math.max(this.lastNs, lastTimeOf(event) ?? 0)
      const profile = this.find(event)
      if (profile) this.joined.add(profile.of)
      return profile ? { ...event, profile } : event
    })
  }

  /** An issue where profiled kernels are not in the log. */
  finish(): TraceEvent[] {
    const { profiles, joined, kernels } = this
    const missing = profiles.length - joined.size
    if (missing === 0 || kernels === 0) return []
    const detail = `expected kernels of the same names, grids and blocks as ${profiles.length} profiled ones, found none for ${missing} of them`
    return [issueOf('profiles-without-kernel', detail, { byte: 0 }, this.lastNs)]
  }

  private add(profile: KernelProfileEvent): void {
    const { full, base } = wordsOf(this.names.text(profile.name))
    for (const kernels of [this.byName.of(full), this.byFunction.of(base)]) {
      const stream = kernels.streams.get(profile.stream)
      if (stream) stream.push(profile)
      else kernels.streams.set(profile.stream, [profile])
      const shape = `${profile.grid} ${profile.block}`
      if (profile.grid !== '' && !kernels.shapes.has(shape)) kernels.shapes.set(shape, profile)
    }
  }

  private find(event: GpuEvent): JoinedProfile | undefined {
    const { name, signature, stream, pid, facts } = event
    const key = `${name} ${signature}`
    let ofName = this.known.get(key)
    if (!ofName && !this.known.has(key)) {
      ofName = this.ofName(this.names.text(signature || name))
      this.known.set(key, ofName)
    }
    if (!ofName) return undefined
    const nth = this.counts.of(`${pid} ${key} ${stream}`).count++
    const [grid, block] = [sizeOf(facts, 'grid', this.names), sizeOf(facts, 'block', this.names)]
    // Tools may number streams in other ways: with one stream in the profile, it is that one.
    const list = ofName.streams.get(stream) ?? (ofName.streams.size === 1 ? [...ofName.streams.values()][0] : undefined)
    const same = list?.[nth]
    const isSame = same && (grid === undefined || same.grid === '' || (same.grid === grid && same.block === block))
    if (isSame) return { of: same, match: grid === undefined || same.grid === '' ? 'shape' : 'launch' }
    const alike = grid === undefined ? undefined : ofName.shapes.get(`${grid} ${block}`)
    return alike && { of: alike, match: 'shape' }
  }

  /** By the whole name; where one of both is only the function, by that. */
  private ofName(text: string): OfName | undefined {
    const { full, base } = wordsOf(text)
    return this.byName.get(full) ?? (full === base ? this.byFunction.get(base) : this.byName.get(base))
  }
}

/**
 * A name without spaces and return type, with numbers as all demanglers have them (`4` for `(int)4`, `1` for `true`); and the function alone:
 * `mul_mat_q<2,64>(float*)`, `mul_mat_q`.
 */
function wordsOf(name: string): { readonly full: string; readonly base: string } {
  const full = name
    .replace(/^(?:static )?void /, '')
    .replaceAll(/\((?:unsigned )?(?:int|long|short|char|bool)\)(?=-?\d)/g, '')
    .replaceAll(/\btrue\b/g, '1')
    .replaceAll(/\bfalse\b/g, '0')
    .replaceAll(/\s+/g, '')
  return { full, base: shortKernelName(full) }
}

/** `64x2x1` of an argument, whatever separates its numbers; undefined without one. */
function sizeOf(facts: GpuEvent['facts'], key: 'grid' | 'block', names: Names): string | undefined {
  let text: unknown
  if (Array.isArray(facts)) {
    const id = names.id(key)
    const arg = (facts as readonly { readonly key: number; readonly name?: number; readonly text?: string }[]).find(
      (arg) => arg.key === id,
    )
    text = arg?.name === undefined ? arg?.text : names.text(arg.name)
  } else text = (facts as Readonly<Record<string, unknown>>)[key]
  const sizes = typeof text === 'string' ? text.match(/\d+/g) : null
  return sizes === null ? undefined : sizes.join('x')
}
