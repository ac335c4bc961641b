import { isOnHost, isRemote } from '../../model/backends.ts'
import { duration } from '../../model/units.ts'
import type { Analysis, CallTime } from '../analysis.ts'
import type { RpcCommandFigures, RpcPeer } from '../rpc/figures.ts'
import { confidenceOf, found, type Limit, type Looked, partsNs, phasesOf, type Rule } from './rule.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'of a phase: a backend of another process costs messages and their transfer, in addition to what it computes',
}

/** Calls wait for a backend that another process serves. */
export const remoteWait: Rule = {
  id: 'remote-wait',
  title: 'Calls wait for a backend of another process (ggml-rpc)',
  limits: { share: SHARE },
  advice:
    'Each graph costs messages, and inputs and results are transferred. Record the server, too (ggml2perfetto record -- rpc-server …), and give both logs to why: ' +
    'where it computes most of the time, a faster device there, or more layers here (-ngl, --tensor-split) help; where messages take most, a faster network',
  covers: ['divided-model', 'gpu-launches'],
  look: (analysis) => {
    const remote = analysis.run.backends.filter(isRemote)
    if (remote.length === 0) return []
    return phasesOf(analysis).flatMap((time) => {
      const ns = waitOf(analysis, time)
      return ns === undefined ? [] : lookAt(analysis, time, ns, remote.join(', '))
    })
  },
}

/**
 * The time in which calls wait for other processes. Of several kinds of devices, their parts do not contain which one they wait for: then it is that of messages; undefined
 * where these were not recorded.
 */
function waitOf({ run, rpc }: Analysis, time: CallTime): number | undefined {
  const isOnly = run.backends.every((name) => isOnHost(name) || isRemote(name))
  if (isOnly) return partsNs(time, 'waiting for a backend', 'submitting to a backend', 'copying for backends')
  if (!rpc?.in_calls || !rpc.peers.some(({ side }) => side === 'client')) return undefined
  const ns = rpc.in_calls.reduce((sum, { phase, time_ns }) => sum + (phase === time.phase ? time_ns : 0), 0)
  return Math.min(ns, time.time_ns)
}

function lookAt(analysis: Analysis, time: CallTime, ns: number, others: string): Looked {
  const { phase, calls, time_ns } = time
  const share = ns / time_ns
  const sentence = `${percent(share)} of ${phase} waits for ${others}`
  if (share < SHARE.value) return { figure: sentence }
  const computing = computedBy(analysis)
  const unknown =
    computing === undefined
      ? 'how much of it its server computes is in the log of the server'
      : 'how much of it its server computes is not known, as its log does not contain the same graphs'
  const where = `${duration(ns / calls)} of ${duration(time_ns / calls)} a call`
  const split =
    typeof computing !== 'number'
      ? unknown
      : `its server computes ${percent(computing)} of such time, messages and their transfer take ${percent(1 - computing)}`
  const messages = (analysis.rpc?.peers ?? []).filter(({ side }) => side === 'client')
  const sum = (key: 'messages' | 'request_bytes' | 'answer_bytes') =>
    messages.reduce((total, peer) => total + peer[key], 0)
  const [looked] = found(`${sentence}: ${where}; ${split}`, {
    time_ns: ns,
    ...confidenceOf(analysis, calls),
    evidence: {
      ...{ phase, backends: others, remote_share: share, remote_ns: ns },
      ...(typeof computing === 'number' && { server_share: computing }),
      ...(messages.length > 0 && {
        ...{ messages: sum('messages'), sent_bytes: sum('request_bytes'), received_bytes: sum('answer_bytes') },
      }),
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: 'remote_ns' },
  })
  return looked!
}

/** The share of the waits of all calls in which servers compute graphs; undefined where none of their logs is given, null where they serve others, too. */
function computedBy(analysis: Analysis): number | null | undefined {
  const graphsOf = (wanted: RpcPeer['side']) =>
    (analysis.rpc?.peers ?? []).flatMap(({ side, commands }) =>
      side === wanted ? commands.filter(({ command }) => /^GRAPH_/.test(command)) : [],
    )
  const countOf = (commands: readonly RpcCommandFigures[]) => commands.reduce((sum, { messages }) => sum + messages, 0)
  const graphs = graphsOf('server')
  if (graphs.length === 0) return undefined
  if (countOf(graphs) !== countOf(graphsOf('client'))) return null
  const computedNs = graphs.reduce((sum, { between_ns }) => sum + between_ns, 0)
  const waitedNs = analysis.call_time.reduce((sum, time) => sum + (waitOf(analysis, time) ?? 0), 0)
  return waitedNs > 0 ? Math.min(1, computedNs / waitedNs) : undefined
}
