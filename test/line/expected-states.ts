import type { StateEvent } from '../../lib/core.ts'
import type { Names, TraceEvent } from '../../lib/index.ts'
import type { Args } from './comparer.ts'

interface StateSlice {
  readonly row: string
  readonly name: string
  readonly startNs: number
  readonly endNs: number
  readonly args: Args
}

const TITLES = { runnable: 'runnable (preempted)', woken: 'runnable (woken)', blocked: 'blocked' }

/** What the rows of threads of their own must hold: each state until the thread's next, the last until the last of all. */
export function stateSlices(events: readonly TraceEvent[], names: Names): StateSlice[] {
  const states = events.filter((event) => event.kind === 'state')
  const lastNs = Math.max(...states.map(({ atNs }) => atNs))
  const threads = [...new Set(states.map(({ tid }) => tid))]
  return states.flatMap((event, i) => {
    if (event.thread === undefined) throw new Error('no fixture had states beside operators so far')
    if (event.state === 'ended') return []
    const next = states.slice(i + 1).find(({ tid }) => tid === event.tid)
    const endNs = next?.atNs ?? lastNs
    if (endNs <= event.atNs) return []
    const thread = names.text(event.thread)
    const row = threads.indexOf(event.tid) < 8 ? `${thread}: state` : `Thread states/${thread}`
    return [{ row, name: titleOf(event), startNs: event.atNs, endNs, args: argsOf(event, names, !next) }]
  })
}

const titleOf = ({ state, cpu }: StateEvent) =>
  state === 'running' ? `running on CPU ${cpu}` : TITLES[state as keyof typeof TITLES]

function argsOf({ tid, cpu, takenBy }: StateEvent, names: Names, isLast: boolean): Args {
  const args: Record<string, string> = { tid: `${tid}` }
  if (cpu >= 0) args['cpu'] = `${cpu}`
  if (isLast) args['inferred'] = 'no end recorded'
  if (takenBy) args['taken_first_by'] = `${names.text(takenBy.comm)} ${takenBy.tid}`
  return args
}
