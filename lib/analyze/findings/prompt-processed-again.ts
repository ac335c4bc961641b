import { count, plural } from '../../model/units.ts'
import type { Analysis, LostRow } from '../analysis.ts'
import { confidenceOfRequests, nameOf } from './requests.ts'
import { found, type Limit, type Looked, type Rule } from './rule.ts'
import { requestOf, WITH_REQUESTS } from './sql.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = { value: 0.1, why: 'of the latency of all requests; less is not worth another prompt' }

const TOKENS: Limit = { value: 32, why: 'tokens of one prompt: fewer are in one batch with the rest' }

const SAME: Limit = {
  value: 0.5,
  why: 'of the prompt are processed again: a prompt that shares a beginning with another one, and then differs, reuses the larger part of it',
}

const LENGTH: Limit = {
  value: 0.9,
  why: 'of the rest of the prompt, so many tokens were in the slot: the prompt of the request before was as long, and may be the same',
}

const FIRST: Limit = {
  value: 2,
  why: 'position: every prompt begins with the same token (BOS); from there on, another prompt is another text',
}

/** The cache contained the prompt, but for a token; the rest was processed again. */
export const promptProcessedAgain: Rule = {
  id: 'prompt-processed-again',
  title: 'A prompt was in the cache of its slot, but was processed again',
  limits: { share: SHARE, tokens: TOKENS, same: SAME, length: LENGTH, first: FIRST },
  advice:
    'The cache is used up to the first token that differs: put what changes (a date, an id, the question) at the end of the prompt, and keep ' +
    'earlier messages as they were sent. Where the server gives a reason, the model cannot drop a part of its state (SWA, recurrent layers): ' +
    '--swa-full, or more checkpoints (--ctx-checkpoints)',
  look: (analysis) => {
    const { requests } = analysis
    if (!requests || requests.reuse.requests === 0) return []
    return lookAt(analysis, requests.reuse.most_lost.filter(isSame), requests.latency_ns)
  },
}

function isSame({ reason, position, tokens, processed_again, prompt_tokens }: LostRow): boolean {
  if (processed_again < TOKENS.value) return false
  if (reason !== null) return true
  const isShared = position >= FIRST.value && processed_again >= SAME.value * prompt_tokens
  return isShared && tokens >= LENGTH.value * (prompt_tokens - position)
}

function takenOf({ time_ns, latency_ns }: LostRow): string {
  if (time_ns === null) return 'the log does not contain how long that took'
  return latency_ns === null ? time(time_ns) : `${time(time_ns)}, ${percent(time_ns / latency_ns)} of its latency`
}

function lookAt(analysis: Analysis, rows: readonly LostRow[], latencyNs: number): Looked[] {
  const [worst] = rows
  if (!worst) return [{ figure: 'no prompt that was in the cache of its slot was processed again' }]
  const { id, task, position, processed_again, prompt_tokens, reason, tokens } = worst
  const ns = rows.reduce((sum, { time_ns }) => sum + (time_ns ?? 0), 0)
  const why = reason === null ? `token ${count(position)} differs from that in its slot` : reason
  const sentence =
    `${count(processed_again)} of ${plural(prompt_tokens, 'token')} of the prompt of ${nameOf(id, task)} were processed again ` +
    `(${takenOf(worst)}): ${why}`
  if (latencyNs === 0 || ns < SHARE.value * latencyNs) return [{ figure: sentence }]
  const unknown = reason === null ? 'that the rest is the same text, from its length' : ''
  return found(sentence, {
    time_ns: ns,
    ...confidenceOfRequests(analysis, unknown),
    evidence: {
      ...{ request: id, ...(task !== null && { task }), position, lost_tokens: tokens, processed_again, prompt_tokens },
      ...{ requests: rows.length, lost_ns: ns, lost_share: ns / latencyNs, ...(reason !== null && { reason }) },
    },
    check: {
      sql: `${WITH_REQUESTS}select prompt_tokens from ${requestOf(id)}`,
      evidence: 'prompt_tokens',
    },
  })
}
