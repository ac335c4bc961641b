import type { InputEvent } from '../../lib/core.ts'
import type { Names, TraceEvent } from '../../lib/index.ts'
import type { Expected } from './sched-lines.ts'

/** The first event: what the input is. */
export function inputOf(events: readonly TraceEvent[]): InputEvent {
  const input = events[0]!
  if (input.kind !== 'input') throw new Error('no input event')
  return input
}

/** Events as the independent reading has them; what a marker moved is moved back. */
export function flat(events: readonly TraceEvent[], names: Names, movedNs = 0n): Expected[] {
  const origin = inputOf(events).originNs - movedNs
  return events.flatMap((event): Expected[] => {
    if (event.kind === 'switch') {
      const { cpu, atNs, prevTid, prevComm, prevPrio, prevState, nextTid, nextComm, nextPrio } = event
      const prev = [names.text(prevComm), prevTid, prevPrio, prevState]
      return [['switch', origin + BigInt(atNs), cpu, ...prev, names.text(nextComm), nextTid, nextPrio]]
    }
    if (event.kind === 'waking') {
      const { cpu, atNs, wakerTid, tid, comm, prio, targetCpu, isIrq } = event
      return [['waking', origin + BigInt(atNs), cpu, wakerTid, names.text(comm), tid, prio, targetCpu, isIrq]]
    }
    if (event.kind !== 'thread') return []
    const { what, atNs, tid, tgid, comm, parentTid } = event
    const start = [what, origin + BigInt(atNs), tid, tgid]
    return [what === 'known' && parentTid < 0 ? start : [...start, names.text(comm), parentTid]]
  })
}
