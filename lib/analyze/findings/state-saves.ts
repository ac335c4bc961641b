import { plural } from '../../model/units.ts'
import { CALLS } from '../run/losses.ts'
import { confidenceOf, found, type Limit, type Rule } from './rule.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.05,
  why: 'of the latency of all requests: a state is copied within memory, in the time of one token',
}

/** States of slots are saved and restored for a long time. */
export const stateSaves: Rule = {
  id: 'state-saves',
  title: 'States of slots are saved and restored for a long time',
  limits: { share: SHARE },
  advice:
    'The prompt cache of the server saves the state of a slot before another prompt takes it: --cache-ram 0 turns it off, more slots make it ' +
    'rare. Checkpoints of SWA and recurrent models: fewer with --ctx-checkpoints',
  // A request waits meanwhile, although a slot is free.
  covers: ['queue-time'],
  look: (analysis) => {
    const { requests, functions } = analysis
    const states = functions.filter(({ what }) => what === 'save-state' || what === 'restore-state')
    if (!requests || requests.latency_ns === 0 || states.length === 0) return []
    const ns = states.reduce((sum, { time_ns }) => sum + time_ns, 0)
    const calls = states.reduce((sum, { calls }) => sum + calls, 0)
    const bytes = states.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
    const share = ns / requests.latency_ns
    const sentence = `states of slots were saved and restored ${plural(calls, 'time')}: ${time(ns)}, ${percent(share)} of the latency of requests`
    if (share < SHARE.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: ns,
      ...confidenceOf(analysis, calls, [...CALLS, 'functions']),
      evidence: { state_share: share, state_ns: ns, calls, state_bytes: bytes },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'state_ns' },
    })
  },
}
