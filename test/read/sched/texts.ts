import { TaskState } from '../../../lib/core.ts'
import { plainBytes } from '../../line/support.ts'

/** What other tools print of a recording, as events with absolute times, names and states in words. */

export interface Said {
  readonly what: string
  readonly ns: bigint
  readonly cpu: number
  readonly fields: string
}

/** `sched load-17609 [000] 17570.230344592: sched_switch: …`; times of the boot clock are printed as nanoseconds. */
const REPORT = /^(?:\w+: )?\s*(.{1,16})-(\d+)\s+\[(\d{3})\]\s*(\d+)(?:\.(\d{9}))?:\s+(\w+):\s+(.*)$/
const SCRIPT =
  /^\s*(?:(.*\S)\s+)?(-?\d+)(?:\/(-?\d+))?\s+(?:\[(-?\d{2,})\]\s+)?(\d+)\.(\d{9}):\s+(?:(?:\w+:)?(\w+):\s+)?(.*)$/
const SWITCH =
  /^prev_comm=(.*) prev_pid=(-?\d+) prev_prio=(-?\d+) prev_state=(\S+) (?:==> )?next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)/
const WAKE = /^comm=(.*) pid=(\d+) prio=(-?\d+)(?: success=\d+)? target_cpu=(\d+)/
const FORK = /^(?:parent_)?comm=(.*) (?:parent_)?pid=(\d+) child_comm=(.*) child_pid=(\d+)/
const RENAME = /^pid=(\d+) oldcomm=(.*) newcomm=(.*) oom_score_adj=/
const EXIT = /^comm=(.*) pid=(\d+) prio=/

/** A state's bits: of a number, or of letters, where `+` says that it was preempted. */
function bitsOf(state: string): number {
  if (/^\d+$/.test(state)) return Number(state)
  const letters = state.replace(/[|R]/g, '')
  return Array.from(letters, (letter) => TaskState[letter as keyof typeof TaskState] ?? Number.NaN).reduce(
    (a, b) => a | b,
    0,
  )
}

/** The fields of a tracepoint in one text, in the same words for every tool; undefined for events that are not read. */
function fieldsOf(event: string, waker: string, body: string): { what: string; fields: string } | undefined {
  const match = (pattern: RegExp) => pattern.exec(body) as unknown as string[]
  if (event === 'sched_switch') {
    const [, prev, prevTid, prevPrio, state, next, nextTid, nextPrio] = match(SWITCH)
    const from = `${prev}:${prevTid} ${prevPrio} ${bitsOf(state!)}`
    return { what: 'switch', fields: `${from} > ${next}:${nextTid} ${nextPrio}` }
  }
  if (event === 'sched_waking') {
    const [, comm, tid, prio, cpu] = match(WAKE)
    return { what: 'waking', fields: `${waker} > ${comm}:${tid} ${prio} ${Number(cpu)}` }
  }
  if (event === 'sched_process_fork') {
    const [, , parent, comm, tid] = match(FORK)
    return { what: 'fork', fields: `${parent} > ${comm}:${tid}` }
  }
  if (event === 'task_rename') {
    const [, tid, , comm] = match(RENAME)
    return { what: 'rename', fields: `${comm}:${tid}` }
  }
  if (event !== 'sched_process_exit') return undefined
  const [, comm, tid] = match(EXIT)
  return { what: 'exit', fields: `${comm}:${tid}` }
}

const linesOf = (fixture: string) => Buffer.from(plainBytes(fixture)).toString('utf8').split('\n').filter(Boolean)

/** What `trace-cmd report -t -R` said. */
export function reportOf(fixture: string): Said[] {
  return linesOf(fixture).flatMap((line) => {
    const found = REPORT.exec(line)
    if (!found) {
      if (/^cpus=\d+$/.test(line)) return []
      throw new Error(`not a line of trace-cmd report: ${line}`)
    }
    const [, , tid, cpu, high, low, event, body] = found as unknown as string[]
    const said = fieldsOf(event!, tid!, body!)
    return said ? [{ ...said, ns: BigInt(`${high}${low ?? ''}`), cpu: Number(cpu) }] : []
  })
}

const RECORDS: readonly (readonly [RegExp, (match: string[]) => { what: string; fields: string }])[] = [
  [
    /^PERF_RECORD_COMM(?: exec)?: (.*):(\d+)\/(\d+)$/,
    ([, comm, pid, tid]) => ({ what: 'rename', fields: `${pid}/${comm}:${tid}` }),
  ],
  [
    /^PERF_RECORD_FORK\((\d+):(\d+)\):\(\d+:(\d+)\)$/,
    ([, pid, tid, parent]) => ({ what: 'fork', fields: `${pid}/${parent} > ${tid}` }),
  ],
  [/^PERF_RECORD_EXIT\((\d+):(\d+)\)/, ([, pid, tid]) => ({ what: 'exit', fields: `${pid}/${tid}` })],
]

/** What `perf script --ns --show-task-events --show-switch-events` said, but for what perf made up when it started. */
export function scriptOf(fixture: string): Said[] {
  return linesOf(fixture).flatMap((line) => {
    const found = SCRIPT.exec(line)
    if (!found) throw new Error(`not a line of perf script: ${line}`)
    const [, , pid, tid, cpu, high, low, event, body] = found as unknown as string[]
    const at = { ns: BigInt(`${high}${low}`), cpu: Number(cpu) }
    const text = event?.startsWith('PERF_RECORD') ? `${event}: ${body}` : body!
    if (at.ns === 0n) return []
    for (const [pattern, say] of RECORDS) {
      const record = pattern.exec(text.trim())
      if (record) return [{ ...say(record), ...at }]
    }
    const change = /^PERF_RECORD_SWITCH(?:_CPU_WIDE)? (OUT|IN) *(preempt)? *(?:next pid\/tid: *-?\d+\/(-?\d+))?/.exec(
      text,
    )
    if (change) {
      const [, way, preempted, next] = change
      if (text.includes('CPU_WIDE')) {
        return way === 'IN' ? [] : [{ what: 'switch', fields: `${tid} ${preempted ? 0 : 1} > ${next}`, ...at }]
      }
      const state = way === 'IN' ? 'running' : preempted ? 'runnable' : 'blocked'
      return [{ what: 'state', fields: `${tid ?? pid} ${state}`, ...at }]
    }
    if (event === undefined || event.startsWith('PERF_RECORD')) return []
    const said = fieldsOf(event, tid ?? pid!, body!)
    return said && !['fork', 'rename', 'exit'].includes(said.what) ? [{ ...said, ...at }] : []
  })
}
