import { confidenceOf, found, type Limit, type Rule } from './rule.ts'
import { time } from './words.ts'

const TIMES: Limit = {
  value: 0.2,
  why: 'times the latency of all requests: a client that reads takes what is sent within a millisecond, which is not recorded',
}

/** Answers wait until their clients read them. */
export const slowClient: Rule = {
  id: 'slow-client',
  title: 'Clients read their answers slowly',
  limits: { times: TIMES },
  advice:
    'The server has made the answers, and the buffers of the connection are full: look at the client, a proxy, or the network. Answers with ' +
    'fewer probabilities (n_probs, logprobs) are smaller. Slots are free meanwhile, but each answer keeps a thread of the server (--threads-http)',
  look: (analysis) => {
    const { requests, functions } = analysis
    const waits = functions.filter(({ what }) => what === 'wait-to-send')
    if (!requests || requests.latency_ns === 0 || waits.length === 0) return []
    const ns = waits.reduce((sum, { time_ns }) => sum + time_ns, 0)
    const calls = waits.reduce((sum, { calls }) => sum + calls, 0)
    const longest = Math.max(...waits.map(({ max_ns }) => max_ns))
    // A slot is free before its answer is read: the waits can be longer than what the server did for the requests.
    const { latency_ns } = requests
    const sentence = `answers wait ${time(ns)} until clients read them, at most ${time(longest)} at a time; the server took ${time(latency_ns)} for them`
    if (ns < TIMES.value * latency_ns) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: ns,
      ...confidenceOf(analysis, calls, ['requests']),
      evidence: { send_wait_ns: ns, latency_ns, calls, longest_ns: longest },
      check: {
        sql: "select sum(dur) from slice where category = 'function' and name = 'wait-to-send'",
        evidence: 'send_wait_ns',
      },
    })
  },
}
