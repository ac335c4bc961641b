/**
 * A long ftrace text: the lines of a real capture repeated, each round with later times. At the start of a round, and where the kernel
 * lost a switch, another switch is inserted, so that every CPU's switches follow from each other as in a text without losses.
 */
import { readFileSync } from 'node:fs'

const STAMP = /^(.*?\[(\d+)\] \S{4,5} +)(\d+)\.(\d{6})(: .*)$/
const SWITCH =
  /^: sched_switch: (prev_comm=.* prev_pid=(\d+) prev_prio=\d+) prev_state=\S+ ==> (next_comm=.* next_pid=(\d+) next_prio=\d+)$/
const PAUSE_US = 10
/** Names of scripts/sched-workload.c that trace_processor takes for fields; with other names, both read the text in the same way. */
const MISREAD = /a pid=1 prio=2|y next_pid=7 n|z prev_pid=1 p|comm=x pid=3/g

/** The lines of a capture with a time: `[text before it, seconds as microseconds, text after it]`. */
function linesOf(path) {
  const lines = []
  const running = new Map()
  const first = new Map()
  const bridge = (cpu, us, to) => {
    const from = running.get(cpu)
    const body = `${from.replace(/next_/g, 'prev_')} prev_state=R ==> ${to.replace(/prev_/g, 'next_')}`
    lines.push([`          <idle>-0       [${cpu}] d..2. `, us, `: sched_switch: ${body}`])
  }
  let last = 0
  const text = readFileSync(path, 'utf8').replace(MISREAD, (name) => name.replace(/\W/g, '_'))
  for (const line of text.split('\n')) {
    const [, before, cpu, seconds, fraction, behind] = STAMP.exec(line) ?? []
    if (before === undefined || behind.includes('tracing_mark_write')) continue
    const us = Number(seconds) * 1e6 + Number(fraction)
    last = Math.max(last, us)
    const [, prev, prevTid, next] = SWITCH.exec(behind) ?? []
    if (prev !== undefined) {
      const known = running.get(cpu)
      if (known === undefined) first.set(cpu, prev)
      else if (!known.includes(` next_pid=${prevTid} `)) bridge(cpu, us, prev)
      running.set(cpu, next)
    }
    lines.push([before, us, behind])
  }
  for (const [cpu, prev] of first) bridge(cpu, last, prev)
  return lines
}

/** The text, of about `bytes` bytes, round by round. */
export function* longText(path, bytes) {
  const lines = linesOf(path)
  const firstUs = lines[0][1]
  const period = lines.at(-1)[1] - firstUs + PAUSE_US
  yield '# tracer: nop\n#\n'
  for (let written = 0, round = 0; written < bytes; round++) {
    const text = lines
      .map(([before, us, behind]) => `${before}${((us + round * period) / 1e6).toFixed(6)}${behind}\n`)
      .join('')
    written += Buffer.byteLength(text)
    yield text
  }
}
