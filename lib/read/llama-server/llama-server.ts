// The log of llama-server, at any verbosity, as text or with --log-jsonl:
//
//   0.05.000.063 I slot launch_slot_: id  3 | task 0 | processing task, is_child = 0
//   {"type":"log","time":5000063,"level":"info","msg":"slot launch_slot_: id  3 | task 0 | processing task, is_child = 0\n"}
//
// Its times count from the server's start. They may be missing (--no-log-timestamps, --no-log-prefix, older servers, Ollama), and
// journald, Docker and others write their own before each line: those times then serve. Other lines are between them; most lines of
// the server itself are about other things than tasks.
//
//     lines.ts      a line → its columns and the server's message
//     times.ts      which of them are the times of events, on which clock

import { LineCursor } from '../../input/line-cursor.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { Inferred, type InputEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import { headText } from '../common/head.ts'
import { holding } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import { ServerMessages } from '../common/server-messages.ts'
import type { Format, ReadContext } from '../format.ts'
import { isServerLine, type LogLine, readLine } from './lines.ts'

/** A step back of the server's own times by less than this is one of the system's clock; by more, the server was started again. */
const STEP_BACK_NS_MAX = 1e9
/** A step back by more than this is no inaccuracy of the times. */
const EARLIER_NS_MAX = 1e6
/** A line without any time is drawn so long after the one before it. */
const LINE_NS = 1000
/** Times of collectors with a coarser resolution do not place the server's own times on their clock. */
const FINE_NS = 1e6

/** Times of the lines of a log: those of the server, else those of the log's collector, else the order of the lines. */
class LineTimes {
  readonly clock: InputEvent['clock']
  readonly originNs: bigint
  /** What the times are, for the trace. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** Of the last line, since the origin. */
  lastNs = 0
  /** {@link Inferred} bits of the time of the last line. */
  inferred = 0
  private readonly kind: 'own' | 'wall' | 'lines'
  private readonly firstNs: bigint

  /** `head`: the first lines, from which the kind of times is chosen. */
  constructor(head: readonly LogLine[]) {
    const own = head.find(({ ownNs, isOwn }) => isOwn && ownNs !== undefined)
    const first = head.find(({ wall }) => wall)?.wall
    this.firstNs = first?.ns ?? 0n
    this.kind = own ? 'own' : first ? 'wall' : 'lines'
    const isFine = first !== undefined && first.resolutionNs <= FINE_NS && first.clock !== 'unknown'
    if (own && isFine) {
      this.clock = first.clock
      this.originNs = startOf(head)
      const how = 'the server counts from its start, which is known from the times that the collector of the log wrote'
      this.attributes = { times: how }
    } else if (own) {
      this.clock = 'unknown'
      this.originNs = 0n
      this.attributes = { times: "the server counts from its start, in steps of the system's clock" }
    } else if (first) {
      this.clock = first.clock
      this.originNs = first.clock === 'unknown' ? 0n : first.ns
      const resolution = `${first.resolutionNs / 1e9} s`
      this.attributes = { times: `when the collector of the log got the lines, to ${resolution}` }
    } else {
      this.clock = 'unknown'
      this.originNs = 0n
      this.attributes = { times: 'none in the log: each line is drawn 1 µs after the one before it' }
    }
  }

  /** Is only the order of the lines known? */
  get isByLine(): boolean {
    return this.kind === 'lines'
  }

  /** The time of the next line, since the origin, in ns; undefined: the server's own times begin again. Never decreases. */
  next({ ownNs, wall, isOwn }: LogLine): number | undefined {
    const atNs = this.kind === 'own' ? ownNs : this.kind === 'wall' ? this.sinceFirst(wall?.ns) : this.lastNs + LINE_NS
    if (this.kind === 'own' && atNs !== undefined && atNs < this.lastNs - STEP_BACK_NS_MAX) return undefined
    // Further lines of a message have no time of their own.
    const isUnknown = this.kind === 'lines' || (atNs === undefined ? isOwn : atNs < this.lastNs - EARLIER_NS_MAX)
    this.inferred = isUnknown ? Inferred.Order : 0
    this.lastNs = Math.max(this.lastNs, atNs ?? 0)
    return this.lastNs
  }

  private sinceFirst(ns: bigint | undefined): number | undefined {
    return ns === undefined ? undefined : Number(ns - this.firstNs)
  }
}

/** The server's start on the collector's clock: the earliest by any line, as collectors only are late. */
function startOf(head: readonly LogLine[]): bigint {
  let start: bigint | undefined
  for (const { wall, ownNs } of head) {
    if (!wall || ownNs === undefined) continue
    const by = wall.ns - BigInt(ownNs)
    if (start === undefined || by < start) start = by
  }
  return start ?? 0n
}

/** Lines from which the times of the log are chosen. */
const HEAD_LINES = 256

export const llamaServer: Format = {
  name: 'llama-server',
  title: "llama-server's own log, as text or with --log-jsonl; also from journald, Docker or Ollama",
  sniff: (head) => headText(head).split('\n').slice(0, -1).some(isServerLine),
  read: (source, context) => new ServerLog(new LineCursor(source, llamaServer.name, true), context).batches(),
}

/** The first lines of a server. */
const START = /^(?:srv +\S+: initializing \.\.\.$|(?:cmn +\S+: \S+: )?build:? \d)/

/** A line, and where it is. */
interface PlacedLine extends LogLine {
  readonly byte: number
  readonly line: number
  readonly isTorn: boolean
}

class ServerLog extends LineReader {
  /** The first lines, until {@link times} is chosen. */
  private head: PlacedLine[] = []
  private times: LineTimes | undefined
  /** By the number that a router writes before the lines of each of its servers. */
  private readonly messages: DefaultMap<number, ServerMessages>
  /** The server of the log; undefined: no task was read yet. */
  private server: number | undefined
  private readonly facts: Record<string, string | number> = Object.create(null)
  /** Steps of tasks. */
  private steps = 0
  private readonly counts = { launch: 0, error: 0, cancel: 0 }
  private others = 0
  /** Lines of the server that are about no task. */
  private unread = 0
  private ofOtherServers = 0
  /** The server was started again: the number of lines from there on. */
  private laterLines = 0

  constructor(lines: LineCursor, { names }: ReadContext) {
    super(lines)
    this.messages = new DefaultMap(() => new ServerMessages(names))
  }

  protected override readLine(lines: LineCursor): void {
    const line = { ...readLine(lines.text), ...lines.position, line: lines.line, isTorn: lines.isTorn }
    if (this.times) this.take(line, this.times)
    else if (this.head.push(line) >= HEAD_LINES) this.begin()
  }

  /** Chooses the times, and reads the first lines. */
  private begin(): void {
    const { head } = this
    const times = new LineTimes(head)
    this.times = times
    const { clock, originNs, attributes, isByLine } = times
    const capabilities = { operators: false }
    this.batch.begin({
      ...{ kind: 'input', format: llamaServer.name, clock, originNs, times: isByLine ? 'order' : 'recorded' },
      ...{ attributes, capabilities },
    })
    if (isByLine) this.issue('lines-without-time', 'expected times in the lines, found none', head[0])
    for (const line of head.splice(0)) this.take(line, times)
  }

  private take(line: PlacedLine, times: LineTimes): void {
    if (this.laterLines > 0) {
      this.laterLines++
      return
    }
    const atNs = times.next(line)
    const { message, child, isTorn } = line
    if (atNs === undefined || (this.steps > 0 && START.test(message))) return this.startedAgain(line)
    if (!line.isOwn) this.others++
    if (this.server !== undefined && child !== this.server) {
      if (child !== 0) this.ofOtherServers++
      return
    }
    const steps = this.messages.of(child).read(message, atNs, -1, times.inferred)
    if (steps.length === 0) {
      if (line.isOwn) this.unread++
      return factsIn(message, this.facts)
    }
    if (isTorn) return this.issue('torn-record', `expected the end of the line, found the end of the log`, line)
    this.server = child
    this.steps += steps.length
    for (const step of steps) {
      this.batch.add(step)
      if (step.what in this.counts) this.counts[step.what as keyof typeof this.counts]++
    }
  }

  /** The server's tasks have the same numbers as those before. */
  private startedAgain(line: PlacedLine): void {
    this.laterLines = 1
    this.issue('server-started-again', 'expected lines of one run of the server, found a second start', line)
  }

  protected override finish(): void {
    if (!this.times) this.begin()
    const { batch, facts, others, laterLines, ofOtherServers, lines } = this
    if (this.steps === 0)
      this.issue('no-tasks', `expected lines about tasks, found none in ${plural(lines.line, 'line')}`, undefined)
    const { launch, error, cancel } = this.counts
    const { contents, attributes } = holding({ 'launched task': launch, error, cancellation: cancel }, 'no tasks')
    batch.add({
      kind: 'facts',
      contents,
      attributes: {
        ...facts,
        ...attributes,
        ...(this.unread > 0 && { lines_without_task: this.unread }),
        ...(others > 0 && { other_lines: others }),
      },
    })
    batch.leftOut.add('lines after another start of the server', laterLines, 'give them in a file of their own')
    batch.leftOut.add('lines of other servers of the router', ofOtherServers, 'give the lines of one server')
    batch.end(lines)
  }

  private issue(
    code: IssueCode,
    detail: string,
    at: { readonly byte: number; readonly line: number } | undefined,
  ): void {
    const position = at ? { byte: at.byte, line: at.line } : { byte: 0 }
    this.batch.add(issueOf(code, detail, position, this.times?.lastNs ?? 0))
  }
}

/** Lines about the server itself, and the attributes of the trace that they give. */
const FACTS: readonly (readonly [form: RegExp, ...keys: string[]])[] = [
  [/\bbuild:? (\d+ \([^()]+\))/, 'llama_cpp'],
  [/\bverbosity = (\d+) \(/, 'verbosity'],
  [/\bloading model '?([^'\n]+)/, 'model'],
  [/\bloading draft model '([^']+)'/, 'draft_model'],
  [/\bn_threads = (\d+) \(n_threads_batch = (\d+)\)/, 'n_threads', 'n_threads_batch'],
  [/\bn_slots = (\d+)(?:, n_ctx_slot = (\d+))?/, 'n_slots', 'n_ctx_slot'],
]
/** Words of which one is in each of these lines. */
const WORDS = ['build', 'verbosity', 'loading', 'n_threads', 'n_slots']

/** Adds the facts that a line contains; the first of each kind stays. */
function factsIn(message: string, facts: Record<string, string | number>): void {
  if (!WORDS.some((word) => message.includes(word))) return
  for (const [form, ...keys] of FACTS) {
    const found = form.exec(message)
    if (!found) continue
    keys.forEach((key, i) => {
      const value = found[i + 1]
      if (value !== undefined && !(key in facts))
        facts[key] = /^\d+$/.test(value) ? Number(value) : value.slice(0, 1000)
    })
  }
}
