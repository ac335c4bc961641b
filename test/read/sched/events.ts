import type { Names, TraceEvent } from '../../../lib/index.ts'
import type { Said } from './texts.ts'

/** Events in the words of {@link Said}, so that they can be compared with what another tool printed. */

export interface Heard extends Said {}

/** What can be compared: by time, then by words. */
export const sorted = (all: readonly Said[]): Said[] =>
  [...all].sort((a, b) =>
    a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : `${a.cpu}${a.what}${a.fields}` < `${b.cpu}${b.what}${b.fields}` ? -1 : 1,
  )

/** What events say, at absolute times; issues, facts and what was known before are left out. */
export function heardFrom(events: readonly TraceEvent[], names: Names, isPerf = false): Heard[] {
  const input = events[0]!
  if (input.kind !== 'input') throw new Error('the first event is not the input')
  const comm = (id: number, tid: number) => (id === 0 ? `${tid}` : `${names.text(id)}:${tid}`)
  const words = (event: TraceEvent): { what: string; fields: string; cpu: number } | undefined => {
    if (event.kind === 'switch') {
      const { prevPrio, prevState, nextPrio } = event
      const [prev, next] = [comm(event.prevComm, event.prevTid), comm(event.nextComm, event.nextTid)]
      const fields =
        prevPrio < 0 ? `${prev} ${prevState} > ${next}` : `${prev} ${prevPrio} ${prevState} > ${next} ${nextPrio}`
      return { what: 'switch', fields, cpu: event.cpu }
    }
    if (event.kind === 'waking') {
      const fields = `${event.wakerTid} > ${comm(event.comm, event.tid)} ${event.prio} ${event.targetCpu}`
      return { what: 'waking', fields, cpu: event.cpu }
    }
    if (event.kind === 'state') return { what: 'state', fields: `${event.tid} ${event.state}`, cpu: -1 }
    if (event.kind !== 'thread' || event.what === 'known') return undefined
    const parent = event.what === 'fork' ? `${event.parentTid} > ` : ''
    const fields = `${isPerf ? `${event.tgid}/` : ''}${parent}${comm(event.comm, event.tid)}`
    return { what: event.what, fields, cpu: -1 }
  }
  return events.flatMap((event) => {
    const said = words(event)
    return said && 'atNs' in event ? [{ ...said, ns: input.originNs + BigInt(event.atNs) }] : []
  })
}

/** Threads' events do not tell their CPU. */
export const withoutCpus = (all: readonly Said[]): Said[] =>
  sorted(all.map((said) => (said.what === 'switch' || said.what === 'waking' ? said : { ...said, cpu: -1 })))
