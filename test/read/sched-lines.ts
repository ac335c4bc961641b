/**
 * An independent reading of scheduler texts, by the regular expressions that were checked on samples of every tool and option
 * (line by line, all of it held): what the readers of lib/read have to give, too.
 */

/** Kind, absolute nanoseconds, then the event's fields. */
export type Expected = readonly (string | number | bigint | boolean)[]

const PERF =
  /^\s*(?:(.*\S)\s+)?(-?\d+)(?:\/(-?\d+))?\s+(?:\[(\d{3,})\]\s+)?(?:[A-Za-z]{1,3}\s+)?(-?\d+\.\d{6,9}):\s+(?:(\d+)\s+)?(?:(\w+):)?(\w+):\s+(.*)$/
const FTRACE =
  /^\s*(.{1,16})-(\d+)\s+(?:\(\s*(\d+|-+)\)\s+)?\[(\d{3})\]\s+(?:([A-Za-z.0-9#]{4,6})\s+)?(\d+(?:\.\d+)?):\s+(?:\([+]\d+\)\s+)?(\w+):\s+(.*)$/
const LATENCY =
  /^\s*(.{1,8})-(\d+)\s+(\d+)([A-Za-z.0-9#]{4,6})\s+(\d+(?:\.\d+)?)(us)?([ +!#*@$])?:?\s*:?\s*(\w+):\s+(.*)$/
const SWITCH =
  /^prev_comm=(.*) prev_pid=(-?\d+) prev_prio=(-?\d+) prev_state=(\S+) (?:==> )?next_comm=(.*) next_pid=(\d+) next_prio=(-?\d+)/
const PLUGIN_SWITCH = /^(.{0,15}):(\d+) \[(-?\d+)\] (\S+) ==> (.{0,15}):(\d+) \[(-?\d+)\]$/
const WAKE = /^comm=(.*) pid=(\d+) prio=(-?\d+)(?: success=\d+)? target_cpu=(\d+)/
const FORK = /^(?:parent_)?comm=(.*) (?:parent_)?pid=(\d+) child_comm=(.*) child_pid=(\d+)/
const EXIT = /^comm=(.*) pid=(\d+) prio=(-?\d+)/
const RENAME = /^pid=(\d+) oldcomm=(.*) newcomm=(.*) oom_score_adj=/
const EXEC = /^filename=(.*) pid=(\d+) old_pid=(\d+)/
const OURS = /^g2p (\w+) (\d+) (\d+) (.*)$/
const BITS: Readonly<Record<string, number>> = { R: 0, 'R+': 256, S: 1, D: 2, T: 4, t: 8, X: 16, Z: 32, P: 64, I: 128 }
/** Of trace-cmd's short form. */
const PLUGIN_BITS: Readonly<Record<string, number>> = { ...BITS, Z: 16, X: 32, W: 128 }

interface Row {
  readonly tid: number
  readonly tgid: number
  readonly cpu: number
  readonly ns: bigint
  readonly isIrq: boolean
  readonly name: string
  readonly body: string
}

const nanoseconds = (seconds: string) => {
  const [whole, fraction = ''] = seconds.split('.')
  return BigInt(whole!) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
}
const idOf = (text: string | undefined) => (text === undefined || text.startsWith('-') ? -1 : Number(text))

function rowOf(line: string, format: string): Row | undefined {
  if (format === 'perf-script') {
    const [, , first, second, cpu, time, , , name, body] = PERF.exec(line) ?? []
    if (time === undefined) return undefined
    const [tid, tgid] = second === undefined ? [first, undefined] : [second, first]
    return {
      tid: Number(tid),
      tgid: idOf(tgid),
      cpu: idOf(cpu),
      ns: nanoseconds(time),
      isIrq: false,
      name: name!,
      body: body!,
    }
  }
  const row = FTRACE.exec(line)
  if (row) {
    const [, , tid, tgid, cpu, flags, time, name, body] = row
    const isIrq = /^..[hHsZz]/.test(flags ?? '')
    return {
      tid: Number(tid),
      tgid: idOf(tgid),
      cpu: Number(cpu),
      ns: nanoseconds(time!),
      isIrq,
      name: name!,
      body: body!,
    }
  }
  const [, , tid, cpu, flags, time, us, , name, body] = LATENCY.exec(line) ?? []
  if (time === undefined) return undefined
  const ns = us === undefined ? nanoseconds(time) : BigInt(time) * 1000n
  return {
    tid: Number(tid),
    tgid: -1,
    cpu: Number(cpu),
    ns,
    isIrq: /^..[hHsZz]/.test(flags!),
    name: name!,
    body: body!,
  }
}

function eventOf({ tid, tgid, cpu, ns, isIrq, name, body }: Row): Expected | undefined {
  // With the option `fields`, numbers stand twice.
  const text = body.replace(/=0x[0-9a-f]+ \((-?\d+)\)/g, '=$1')
  if (name === 'sched_switch') {
    const plain = SWITCH.exec(text)
    const [, prev, prevTid, prevPrio, state, next, nextTid, nextPrio] = plain ?? PLUGIN_SWITCH.exec(text)!
    const bits = /^\d/.test(state!) ? Number(state) : (plain ? BITS : PLUGIN_BITS)[state!]!
    return [
      'switch',
      ns,
      cpu,
      comm(prev!),
      Number(prevTid),
      Number(prevPrio),
      bits,
      comm(next!),
      Number(nextTid),
      Number(nextPrio),
    ]
  }
  if (name === 'sched_waking') {
    const [, wakee, pid, prio, target] = WAKE.exec(text)!
    return ['waking', ns, cpu, tid, comm(wakee!), Number(pid), Number(prio), Number(target), isIrq]
  }
  if (name === 'sched_process_fork') {
    const [, , parent, child, pid] = FORK.exec(text)!
    return ['fork', ns, Number(pid), -1, comm(child!), Number(parent)]
  }
  const own = (pid: string) => (Number(pid) === tid ? tgid : -1)
  if (name === 'sched_process_exit') {
    const [, who, pid] = EXIT.exec(text)!
    return ['exit', ns, Number(pid), own(pid!), comm(who!), -1]
  }
  if (name === 'task_rename') {
    const [, pid, , now] = RENAME.exec(text)!
    return ['rename', ns, Number(pid), own(pid!), comm(now!), -1]
  }
  if (name === 'sched_process_exec') {
    const [, file, pid] = EXEC.exec(text)!
    return ['rename', ns, Number(pid), tgid, comm(file!.replace(/^.*\//, '').slice(0, 15)), -1]
  }
  return undefined
}

/** As `trace-cmd report -R` prints it, or as it is. */
function comm(text: string): string {
  const array = /^ARRAY\[([0-9a-f, ]+)\]$/.exec(text)
  if (!array) return text
  return Buffer.from(array[1]!.replaceAll(', ', ''), 'hex').toString().replace(/\0.*/, '')
}

function ourEventOf(line: string): Expected | undefined {
  const [, type, time, cpu, rest] = OURS.exec(line) ?? []
  if (type === undefined) return undefined
  const ns = BigInt(time!)
  const numbers = rest!.split(' ').map(Number)
  const text = (count: number) => rest!.split(' ').slice(count).join(' ')
  const [a, b, c, d, e] = numbers as [number, number, number, number, number]
  if (type === 'switch') {
    const comms = Buffer.from(text(5))
    const prev = comms.subarray(0, 16).toString().trimEnd()
    return ['switch', ns, Number(cpu), prev, a, b, c, comms.subarray(17).toString(), d, e]
  }
  if (type === 'waking') return ['waking', ns, Number(cpu), a, text(5), b, c, d, e === 1]
  if (type === 'fork') return ['fork', ns, b, c, text(3), a]
  return [type, ns, a, b, text(2), -1]
}

/** Threads are told of once per process. */
function* knownOf(rows: readonly Row[]): Generator<readonly [number, Expected]> {
  const seen = new Map<number, number>()
  for (const [i, { tid, tgid, ns }] of rows.entries()) {
    if (tid <= 0 || tgid < 0 || seen.get(tid) === tgid) continue
    seen.set(tid, tgid)
    yield [i, ['known', ns, tid, tgid]]
  }
}

/** The event of a line of ftrace's or perf's texts. */
export function eventIn(line: string, format: string): Expected | undefined {
  const row = rowOf(line.replace(/ +$/, ''), format)
  return row && eventOf(row)
}

/** All events that a text holds, in order of time; `known` ones without names, which come from another column. */
export function expectedIn(text: string, format: string): Expected[] {
  if (format === 'bpftrace') {
    const lines = text.split('\n').map((line) => {
      if (!line.startsWith('{')) return line
      const { type, data } = JSON.parse(line) as { type: string; data: string }
      return type === 'printf' ? data.replace(/\n$/, '') : ''
    })
    return sorted(lines.map(ourEventOf))
  }
  const rows = text.split('\n').map((line) => rowOf(line.replace(/ +$/, ''), format))
  const found = rows.filter((row) => row !== undefined)
  const known = new Map(knownOf(found))
  return sorted(found.flatMap((row, i) => [known.get(i), eventOf(row)]))
}

const sorted = (events: readonly (Expected | undefined)[]) =>
  events
    .filter((event) => event !== undefined)
    .map((event, i) => ({ event, i }))
    .sort((a, b) => Number((a.event[1] as bigint) - (b.event[1] as bigint)) || a.i - b.i)
    .map(({ event }) => event)
