import { UsageError } from '../../errors.ts'
import type { Replay } from '../../input/replay.ts'
import type { Clock, ClocksEvent, InputEvent, TraceEvent } from '../../model/events.ts'
import { TIME_NS_MAX } from '../../model/limits.ts'
import type { Estimate } from './estimate.ts'
import { type GivenClock, inputNamed, movesTimes, parseClock } from './given.ts'
import { type Relation, SAME } from './relation.ts'
import type { Unrelated } from './server-lines.ts'
import type { Sights } from './sights.ts'
import { type Offsets, offsetAt, Snapshots } from './snapshots.ts'
import { offsetOf } from './zones.ts'

/**
 * Within one boot, REALTIME minus another clock changes by less than this between the readings of two inputs: NTP slews it by at
 * most 500 ppm (10 s in 5 h) and steps it by about a second at most. Another boot differs by at least the uptime of the first.
 * 10 s.
 */
const WALL_NS_MAX = 10_000_000_000n
/** Best first: BOOTTIME counts while the machine is suspended, as REALTIME does; the others stop. */
const COUNTERS: readonly Clock[] = ['BOOTTIME', 'MONOTONIC', 'MONOTONIC_RAW']

/** Were two inputs recorded in one boot? */
interface Comparison {
  readonly boot: 'same' | 'other' | 'unknown'
  /** The reason, in words. */
  readonly why: string
}

/** Facts about the boot in which an input was recorded. All clocks of the kernel except REALTIME start again with each boot. */
class Boot {
  private readonly id: string | undefined
  private readonly kernel: string | undefined
  private readonly timeNamespace: string
  /** REALTIME minus each clock. */
  private readonly walls = new Map<Clock, bigint>()

  constructor(
    readonly name: string,
    { attributes }: InputEvent,
  ) {
    const { boot_id: id, kernel, kernel_release: release = kernel, time_namespace = '' } = attributes
    this.id = id === undefined ? undefined : String(id)
    this.kernel = release === undefined ? undefined : String(release)
    this.timeNamespace = String(time_namespace || "the system's")
  }

  /** Keeps the first readings of clocks. */
  see(batch: readonly TraceEvent[]): void {
    for (const event of batch) if (event.kind === 'clocks') this.addReadings(event)
  }

  /** Is `other` of the same boot? */
  compare(other: Boot): Comparison {
    const differs = (what: string, own: string, its: string): Comparison => {
      return { boot: 'other', why: `${what} ${own}, that of ${other.name} is ${its}` }
    }
    if (this.id !== undefined && other.id !== undefined) {
      if (this.id !== other.id) return differs('its boot id is', this.id, other.id)
      const { timeNamespace: its } = other
      if (this.timeNamespace !== its) return differs('its time namespace is', this.timeNamespace, its)
      return { boot: 'same', why: 'of the same boot' }
    }
    if (this.kernel !== undefined && other.kernel !== undefined && this.kernel !== other.kernel) {
      return differs('its kernel is', this.kernel, other.kernel)
    }
    const clock = COUNTERS.find((counter) => this.walls.has(counter) && other.walls.has(counter))
    if (!clock) return { boot: 'unknown', why: 'by its name, not checked' }
    const apartNs = this.walls.get(clock)! - other.walls.get(clock)!
    if (apartNs < WALL_NS_MAX && apartNs > -WALL_NS_MAX) return { boot: 'same', why: 'and REALTIME agrees' }
    const by = `${(Math.abs(Number(apartNs)) / 1e9).toFixed(0)} s`
    const why = `at the same CLOCK_${clock}, its CLOCK_REALTIME is ${by} ${apartNs < 0n ? 'behind' : 'ahead of'} that of ${other.name}`
    return { boot: 'other', why }
  }

  private addReadings({ readings }: ClocksEvent): void {
    const wall = readings.find(({ clock }) => clock === 'REALTIME')
    if (!wall) return
    for (const { clock, ns } of readings) if (!this.walls.has(clock)) this.walls.set(clock, wall.ns - ns)
  }
}

/** Events of an input that are read ahead, and kept, to find its relation if its first events do not contain it. */
const LOOK_AHEAD_EVENTS = 200_000
/** Estimates with a larger error are not used: the intervals that they should explain are shorter. 1 ms. */
const BOUND_NS_MAX = 1e6
const NAMED = 'the clock is as given'

type Batches = Replay<TraceEvent[]>

/** An input whose first event is known. */
interface Begun {
  readonly name: string
  readonly first: InputEvent
  readonly batches: Batches
}

/** An input whose relation to the trace's clock is known. */
export interface Joined {
  readonly relation: Relation
  /** The user has given the relation; or the boot was checked to be the same; or the boot is unknown. */
  readonly trust: 'given' | 'checked' | 'unchecked'
  /** It is of another boot or machine: its readings of clocks are not those of the others. */
  readonly isElsewhere?: boolean
  readonly batches: Batches
}

/**
 * Puts inputs on one clock, that of the first input. Their relation is given by the user, the same clock, computed from recorded
 * readings of several clocks, or estimated from threads that both inputs record; of other machines, inferred from messages between the two. It
 * is never guessed.
 */
export class Clocks {
  private readonly given = new Map<string, GivenClock>()
  private readonly snapshots = new Snapshots()
  private readonly areSeveral: boolean
  /** Of the first input, where others may need them. */
  private sights: Sights | undefined
  private firstName = ''
  private first: InputEvent | undefined
  /** Of the inputs whose times the user does not shift. */
  private readonly boots: Boot[] = []

  /** `given`: the user's clocks of inputs, by name or file name. Throws UsageError for an invalid clock or an unknown input. */
  constructor(given: Readonly<Record<string, string>>, inputs: readonly string[]) {
    this.areSeveral = inputs.length > 1
    for (const [key, text] of Object.entries(given)) {
      const name = inputNamed(key, inputs)
      if (name === undefined) throw new UsageError(`clock of ${key}: no such input; there are: ${inputs.join(', ')}`)
      this.given.set(name, parseClock(name, text))
    }
  }

  /** The first input; all others are put on its clock. */
  get reference(): InputEvent {
    return this.first!
  }

  /**
   * Finds the relation of `other` to the first input before the first input is read: by its first events, if the names of the
   * clocks do not suffice. Throws UsageError if there is no relation.
   */
  async joinAhead(other: Begun, first: Joined): Promise<Joined> {
    const input = this.declared(other.name, other.first)
    const isKnown = this.known(other.name, input) && !(await this.isElsewhere(other, input))
    if (isKnown) return this.join(other)
    const boots = this.boots.length
    try {
      await lookAt(first.batches, LOOK_AHEAD_EVENTS, (batch) => this.note(batch, batch))
      return await this.join(other)
    } catch (error) {
      this.boots.length = boots // it may be joined later
      throw error
    } finally {
      this.sights = await sightsOf() // the first input is noted again when it is read
    }
  }

  /** Finds the relation of an input. Throws UsageError if there is none, or if the input is of another boot. */
  async join({ name, first, batches }: Begun): Promise<Joined> {
    const input = this.declared(name, first)
    if (input.clock === 'none') {
      throw new UsageError(
        `${name}: contains nothing to draw: ${first.format} adds to a log\nhint: give the log of the same run, too`,
      )
    }
    const boot = new Boot(name, first)
    await lookAt(batches, 1, (batch) => boot.see(batch))
    if (!this.first) {
      this.begin(name, input)
      this.boots.push(boot)
      if (this.areSeveral) this.sights = await sightsOf()
      const how =
        input !== first
          ? NAMED
          : input.clock === 'unknown'
            ? 'not recorded: other logs go onto the same timeline only with --clock'
            : SAME.how
      return { relation: { ...SAME, how }, trust: 'given', batches }
    }
    const known = this.known(name, input)
    if (known && this.isMoved(name)) return { relation: this.checked(name, known), trust: 'given', batches }
    const elsewhere = this.elsewhere(boot, input)
    if (elsewhere !== undefined) return this.fromElsewhere(name, batches, elsewhere)
    const { trust, why } = this.compared(boot, input)
    if (!known) return { trust, relation: await this.lookAhead(name, input, batches), batches }
    const how = known.how !== SAME.how ? known.how : input !== first ? NAMED : `${SAME.how}, ${why}`
    return { relation: this.checked(name, { ...known, how }), trust, batches }
  }

  /** Keeps readings of clocks and times of threads, which may relate further inputs. `placed`: the batch in times of the trace. */
  note(raw: readonly TraceEvent[], placed: readonly TraceEvent[]): void {
    for (const event of raw) if (event.kind === 'clocks') this.snapshots.add(event.readings)
    for (const event of placed) this.sights!.see(event)
  }

  /** Why an input is of another boot or machine than the others; undefined if it is not known to be. */
  private elsewhere(boot: Boot, { clock }: InputEvent): string | undefined {
    if (clock === 'REALTIME' || this.reference.clock === 'REALTIME') return undefined
    return this.boots.map((other) => boot.compare(other)).find((comparison) => comparison.boot === 'other')?.why
  }

  private async isElsewhere({ name, first, batches }: Begun, input: InputEvent): Promise<boolean> {
    if (this.isMoved(name)) return false
    const boot = new Boot(name, first)
    await lookAt(batches, 1, (batch) => boot.see(batch))
    return this.elsewhere(boot, input) !== undefined
  }

  /** Relates an input of another machine by messages between the two. Throws UsageError if both record none. */
  private async fromElsewhere(name: string, batches: Batches, why: string): Promise<Joined> {
    const here = await sightsOf()
    const { messages } = this.sights!
    if (!messages.isEmpty) {
      await lookAt(batches, LOOK_AHEAD_EVENTS, (batch) => {
        for (const event of batch) here.see(event)
      })
    }
    const relation = messages.relationOf(here.messages)
    if (!relation) throw otherBoot(name, why)
    return { trust: 'checked', relation: this.checked(name, relation), isElsewhere: true, batches }
  }

  /** Compares an input's boot with those of the others, from which it does not differ. */
  private compared(boot: Boot, { clock }: InputEvent): { trust: 'checked' | 'unchecked'; why: string } {
    if (clock === 'REALTIME' || this.reference.clock === 'REALTIME') return { trust: 'checked', why: 'REALTIME' }
    const all = this.boots.map((other) => boot.compare(other))
    this.boots.push(boot)
    const same = all.find((comparison) => comparison.boot === 'same')
    return { trust: same ? 'checked' : 'unchecked', why: (same ?? all[0]!).why }
  }

  /** Does the user shift the input's times? */
  private isMoved(name: string): boolean {
    const given = this.given.get(name)
    return given !== undefined && movesTimes(given)
  }

  private begin(name: string, input: InputEvent): void {
    if (this.isMoved(name)) {
      throw new UsageError(
        `clock of ${name}: no other input has a clock that it could be moved to\nhint: give the offset of another input`,
      )
    }
    this.first = input
    this.firstName = name
  }

  /** An input with the clock that the user names, if it does not record one. */
  private declared(name: string, first: InputEvent): InputEvent {
    const given = this.given.get(name)
    if (given && 'zone' in given) return inZone(name, first, given.zone)
    if (!given || !('clock' in given) || first.clock === given.clock) return first
    if (first.clock === 'unknown') return { ...first, clock: given.clock }
    throw new UsageError(`clock of ${name}: expected CLOCK_${first.clock}, which it records, found ${given.clock}`)
  }

  /** The relation, if it is known without the input's events. */
  private known(name: string, { clock, originNs }: InputEvent): Relation | undefined {
    const { clock: to, originNs: zeroNs } = this.reference
    const given = this.given.get(name)
    if (given && 'offsetNs' in given) return shifted(`as given: ${given.text}`, originNs + given.offsetNs - zeroNs)
    if (given && 'startNs' in given) return shifted(`as given: begins ${given.text}`, given.startNs - zeroNs)
    if (clock === 'none' || clock === 'unknown' || to === 'none' || to === 'unknown') return undefined
    if (clock === to) return { ...SAME, shiftNs: Number(originNs - zeroNs) }
    const offsets = this.snapshots.between(clock, to)
    return offsets && this.bySnapshots(clock, offsets, originNs)
  }

  private bySnapshots(clock: Clock, offsets: Offsets, originNs: bigint): Relation {
    const { clock: to, originNs: zeroNs } = this.reference
    const what = `CLOCK_${clock} and CLOCK_${to} were read together`
    return {
      how: offsets.readings === 2 ? `${what}, at two times` : `${what}, once: drift is not known`,
      shiftNs: Number(originNs + offsetAt({ ...offsets, drift: 0 }, originNs) - zeroNs),
      drift: offsets.drift,
      driftFromNs: Number(offsets.atNs - originNs),
      boundNs: undefined,
    }
  }

  /** Reads more of an input, up to a limit, to find the relation of its clock to the trace's. */
  private async lookAhead(name: string, input: InputEvent, batches: Batches): Promise<Relation> {
    const here = await sightsOf()
    await lookAt(batches, LOOK_AHEAD_EVENTS, (batch) => {
      for (const event of batch) {
        if (event.kind === 'clocks') this.snapshots.add(event.readings)
        here.see(event)
      }
    })
    return this.checked(name, this.known(name, input) ?? this.estimated(name, input, here))
  }

  private estimated(name: string, input: InputEvent, here: Sights): Relation {
    const estimate = this.sights!.estimate(here)
    if (!estimate || estimate.boundNs > BOUND_NS_MAX) {
      const byLines = this.sights!.serverLines.relationOf(here.serverLines)
      if (!byLines || 'why' in byLines) throw this.unrelated(name, input, estimate, byLines)
      return byLines
    }
    const { offsetNs, boundNs, agreeing, ranges } = estimate
    const how = `estimated from threads or tasks that both inputs record: ${agreeing} of ${ranges} observations agree`
    return { how, shiftNs: offsetNs, drift: 0, driftFromNs: 0, boundNs }
  }

  private unrelated(
    name: string,
    { clock, clockSource }: InputEvent,
    estimate: Estimate | undefined,
    byLines: Unrelated | undefined,
  ): UsageError {
    const { clock: to } = this.reference
    const first = `${this.firstName} (${to === 'unknown' ? 'clock not recorded' : `CLOCK_${to}`})`
    const own =
      clockSource === 'local'
        ? 'has local times, and does not record their time zone'
        : clock === 'unknown'
          ? 'does not record its clock'
          : `runs on CLOCK_${clock}`
    const rough =
      estimate && `; threads that both record determine it only to ±${(estimate.boundNs / 1e6).toPrecision(3)} ms`
    const hints = byLines
      ? [byLines.hint]
      : clockSource === 'local'
        ? [`name the time zone of the machine: --clock ${name}=UTC+2, or --clock ${name}=Europe/Berlin`]
        : clock === 'unknown'
          ? [
              `if you know its clock, name it (mono, boot, mono_raw, real): --clock ${name}=mono`,
              'to record on MONOTONIC: trace-cmd record -C mono, perf record -k CLOCK_MONOTONIC, or echo mono > trace_clock',
            ]
          : ['a .ggtrace log contains readings of MONOTONIC, BOOTTIME and REALTIME: give one of the same run, first']
    const lines = byLines ? `: ${byLines.why}` : ''
    const what = `${name}: ${own}; no known relation to ${first}${rough ?? ''}${lines}`
    return refusal(what, [...hints, `or give the offset of its times: --clock ${name}=+1.2ms`])
  }

  private checked(name: string, relation: Relation): Relation {
    if (Math.abs(relation.shiftNs) <= TIME_NS_MAX) return relation
    const days = Math.round(Math.abs(relation.shiftNs) / 86_400e9)
    throw new UsageError(
      `${name}: begins ${days} days away from ${this.firstName}, expected at most 100\nhint: convert them one by one`,
    )
  }
}

/** What relates inputs by their threads is loaded where there are several. */
async function sightsOf(): Promise<Sights> {
  return new (await import('./sights.ts')).Sights()
}

/** Reads whole batches ahead, which the input returns again later, until they contain `eventsMax` events. */
function lookAt(batches: Batches, eventsMax: number, see: (batch: readonly TraceEvent[]) => void): Promise<void> {
  let events = 0
  return batches.look((batch) => {
    see(batch)
    events += batch.length
    return events >= eventsMax
  })
}

/** An input with local times, in a time zone. Throws UsageError for an input with others. */
function inZone(name: string, first: InputEvent, zone: string): InputEvent {
  const { clock, clockSource, originNs } = first
  if (clockSource === 'local') return { ...first, clock: 'REALTIME', originNs: originNs - offsetOf(zone, originNs) }
  const found = clock === 'unknown' ? 'times without a date' : `CLOCK_${clock}, which it records`
  throw new UsageError(`clock of ${name}: expected local times for the time zone ${zone}, found ${found}`)
}

function refusal(what: string, hints: readonly string[]): UsageError {
  const lines = [...hints, 'or convert them one by one']
  return new UsageError(`${what}\n${lines.map((line) => `hint: ${line}`).join('\n')}`)
}

function otherBoot(name: string, why: string): UsageError {
  const hint = `if you know that the boot is the same, give the offset of its times: --clock ${name}=+0s`
  return refusal(`${name}: is of another boot or machine, whose clocks have nothing in common: ${why}`, [hint])
}

function shifted(how: string, shiftNs: bigint): Relation {
  return { how, shiftNs: Number(shiftNs), drift: 0, driftFromNs: 0, boundNs: undefined }
}
