import type { Analysis, CallTime, OperatorRow } from '../analysis.ts'
import { either } from './program.ts'
import { confidenceOf, found, type Limit, type Looked, phasesOf, type Rule, stoppedIn } from './rule.ts'
import { callsOf, slicesIn } from './sql.ts'
import { number, percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'operators compute and spin: a worker that is blocked in one waits for a page, a lock or a barrier, which runs from memory do not',
}
const FAULTS: Limit = {
  value: 16,
  why: 'major faults a call, on average: the model does not stay in memory; code and caches of the program fault once',
}

/** From here on, reads from disks during a call are those of pages that it uses. Also of the rule of first calls. */
export const READ: Limit = {
  value: 1e6,
  why: 'bytes a call from disks, on average: the kernel reads ahead, so that a few major faults read much; a run from memory reads nothing',
}

const AT_ONCE: Limit = {
  value: 0.25,
  why: 'of the time blocked, at barriers while all workers are blocked: half of it where one worker is stopped in an operator and another one at a barrier',
}

const STOPPED_ADVICE =
  'Something stops the whole program and continues it: SIGSTOP (cpulimit, a debugger) or a container that is paused (freezer). ' +
  'Where nothing does, its workers wait for a disk or a lock: perf trace -s lists the system calls in which threads wait'

/** Workers wait within operators for pages of the model: they are blocked, and the kernel counted faults or bytes that it read from a disk. */
export const pageFaults: Rule = {
  id: 'page-faults',
  title: 'Operators wait for pages that are not in memory',
  limits: { share: SHARE, faults: FAULTS, read: READ },
  advice: (program) => {
    const { hasMemoryLimit } = program
    const more = hasMemoryLimit ? 'a higher limit of the container’s memory' : undefined
    const [keep, read] = hasMemoryLimit ? [] : [program.option('keepInMemory'), program.option('readAtStart')]
    const ways = either(more, 'a smaller quantisation', keep, read, 'fewer experts in memory')
    return `The model, or what else runs, does not fit into memory: ${ways}. record --faults names the weights (track Faults and I/O)`
  },
  covers: ['blocked-workers'],
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

/** Workers are blocked within operators, and it is not page faults, or not known whether it is. */
export const blockedWorkers: Rule = {
  id: 'blocked-workers',
  title: 'Workers are blocked within operators',
  limits: { share: SHARE, at_once: AT_ONCE },
  advice: (program) => {
    const fewer = program.hasFreeCpus ? '' : 'fewer threads, or '
    return (
      'Threads of OpenMP sleep at barriers when they have waited for a while, or at once if others need their CPUs: ' +
      `${fewer}CPUs that no other program uses. perf trace -s lists the system calls in which threads wait`
    )
  },
  look: (analysis) => phasesOf(analysis).flatMap((time) => blockedIn(analysis, time)),
}

/** Where workers are blocked in the operators of a phase, and how often for a page. */
interface Blocked {
  readonly rows: readonly OperatorRow[]
  /** Undefined where states were not recorded. */
  readonly ns: number | undefined
  /** Of it, at barriers while all workers were blocked at once. */
  readonly stoppedNs: number
  /** Of it, in operators with major faults; all where these were not counted by operator, or reads ahead make others wait, too. */
  readonly withFaultsNs: number
  /** Major faults a call; undefined where they were not counted. */
  readonly faults: number | undefined
  readonly areOfOperators: boolean
  /** Bytes a call; undefined where they were not counted. */
  readonly read: number | undefined
}

function blockedOf(analysis: Analysis, { phase, calls, resources }: CallTime): Blocked {
  const rows = analysis.operators.rows.filter((row) => row.phase === phase)
  const workers = Math.max(1, ...rows.map((row) => row.workers.length))
  const areOfOperators = rows.some(({ counters }) => counters['major_faults'] !== undefined)
  const hasStates = rows.some(({ blocked_ns }) => blocked_ns !== null)
  const blockedNs = (rows: readonly OperatorRow[]) => rows.reduce((sum, { blocked_ns }) => sum + (blocked_ns ?? 0), 0)
  const stoppedNs = stoppedIn(rows)
  const read = resources ? resources.disk_bytes / Math.max(resources.calls, 1) : undefined
  const faulting =
    areOfOperators && (read ?? 0) < READ.value
      ? rows.filter(({ counters }) => (counters['major_faults'] ?? 0) > 0)
      : rows
  const counted = rows.reduce((sum, { counters }) => sum + (counters['major_faults'] ?? 0), 0)
  const ofCalls = resources ? resources.major_faults / Math.max(resources.calls, 1) : undefined
  return {
    rows,
    ns: hasStates ? (blockedNs(rows) + stoppedNs) / workers : undefined,
    stoppedNs: stoppedNs / workers,
    withFaultsNs: blockedNs(faulting) / workers,
    faults: areOfOperators ? counted / calls : ofCalls,
    areOfOperators,
    read,
  }
}

/** Are they blocked for pages? */
function waitsForPages({ ns, withFaultsNs, faults, read }: Blocked, time: CallTime): boolean {
  if ((faults ?? 0) < FAULTS.value && (read ?? 0) < READ.value) return false
  return ns === undefined || withFaultsNs >= SHARE.value * time.time_ns
}

function lookAt(analysis: Analysis, time: CallTime): Looked[] {
  const { phase, calls, time_ns, resources } = time
  const blocked = blockedOf(analysis, time)
  const { rows, ns, withFaultsNs, faults, areOfOperators, read } = blocked
  if (faults === undefined) return []
  const share = withFaultsNs / time_ns
  const isRead = (read ?? 0) >= READ.value
  const inWords = [
    ...(ns === undefined ? [] : [`its workers are blocked ${percent(share)} of it`]),
    `${number(faults)} major page faults${isRead ? ` and ${number(read! / 1e6)} MB from disks` : ''} a call`,
  ].join(', ')
  if (!waitsForPages(blocked, time)) return [{ figure: `${phase}: ${inWords}` }]
  const sentence = `${phase} waits for pages: ${inWords}${where(rows, ({ counters, blocked_ns }) => counters['major_faults'] ?? blocked_ns)}`
  const inCalls = areOfOperators && !isRead ? slicesIn(phase, 'operator') : ofCalls(phase)
  const key = isRead ? 'disk_bytes' : 'major_faults'
  return found(sentence, {
    time_ns: withFaultsNs,
    ...confidenceOf(analysis, calls),
    evidence: {
      phase,
      ...(ns !== undefined && { blocked_share: share, blocked_ns: withFaultsNs }),
      major_faults: Math.round(areOfOperators ? faults * calls : resources!.major_faults),
      ...(resources && { disk_bytes: resources.disk_bytes }),
    },
    check: { sql: `select sum(extract_arg(s.arg_set_id, 'debug.${key}')) ${inCalls}`, evidence: key },
  })
}

/** Slices `s` of the calls of a phase. */
const ofCalls = (phase: CallTime['phase']) =>
  `from ${callsOf(phase)} c join slice s on s.ts = c.ts and s.category = 'token'`

function blockedIn(analysis: Analysis, time: CallTime): Looked[] {
  const { phase, time_ns } = time
  const blocked = blockedOf(analysis, time)
  const { rows, ns, stoppedNs, faults } = blocked
  if (ns === undefined) return []
  const share = ns / time_ns
  const by = faults === undefined ? 'barrier, lock or page' : 'barrier or lock'
  const counted = faults === undefined ? 'page faults were not counted' : `${number(faults)} major page faults a call`
  const isStopped = stoppedNs >= AT_ONCE.value * ns && stoppedNs > 0
  const how = isStopped ? `, mostly all at once (stopped, ${by}: ${counted})` : ` in operators (${by}: ${counted})`
  const sentence = `${phase}: workers are blocked ${percent(share)} of it${how}${where(rows, ({ blocked_ns }) => blocked_ns)}`
  if (share < SHARE.value || waitsForPages(blocked, time)) return [{ figure: sentence }]
  return found(sentence, {
    time_ns: ns,
    confidence: 'medium',
    confidence_reason: `blocked in operators${isStopped ? ' and at barriers' : ''}; what they wait for is not recorded, ${counted}`,
    ...(isStopped && { advice: STOPPED_ADVICE }),
    evidence: {
      phase,
      blocked_share: share,
      blocked_ns: ns,
      ...(isStopped && { stopped_ns: stoppedNs }),
      ...(faults !== undefined && { faults_per_call: faults }),
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'blocked_share' },
  })
}

/** The layer with most of a figure. */
function where(rows: readonly OperatorRow[], figure: (row: OperatorRow) => number | null | undefined): string {
  const layers = new Map<number, number>()
  for (const row of rows) layers.set(row.layer, (layers.get(row.layer) ?? 0) + (figure(row) ?? 0))
  const most = [...layers].reduce((a, b) => (b[1] > a[1] ? b : a), [-1, 0])
  return most[0] < 0 || most[1] === 0 ? '' : `, most in blk.${most[0]}`
}
