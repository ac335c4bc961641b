import { plural } from '../../model/units.ts'
import type { Analysis, StallPair } from '../analysis.ts'
import { confidenceOfRequests, nameOf } from './requests.ts'
import { found, type Limit, type Rule } from './rule.ts'
import { requestParts, WITH_REQUESTS } from './sql.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'a request waits for the prompts of others; below a fifth of its latency, for one of them, it hardly notices',
}

const ALL: Limit = {
  value: 0.05,
  why: 'of the latency of all requests: less is one unlucky request, not what makes the server slow',
}

/** The prompt of one request stopped the answer of another. */
export const requestStalled: Rule = {
  id: 'request-stalled',
  title: 'Answers wait while the prompt of another request is processed',
  limits: { share: SHARE, all: ALL },
  advice:
    'A call takes as many tokens of the prompt as fit into a batch: with smaller --batch-size and --ubatch-size the others get their tokens ' +
    'more often (the prompt itself becomes slower). A second server for long prompts, or prompts that start with the same text (reuse), avoid it',
  look: (analysis) => {
    const { requests } = analysis
    const worst = requests?.stalls.pairs.toSorted((a, b) => b.prefill_ns - a.prefill_ns)[0]
    if (!requests || !worst || worst.prefill_ns === 0) return []
    const ns = requests.stalls.by_prompts_ns
    const sentence = sentenceOf(worst)
    const share = worst.prefill_ns / latencyOf(worst)
    if (share < SHARE.value || ns < ALL.value * requests.latency_ns) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: ns,
      ...confidenceOfRequests(
        analysis,
        isInferred(analysis, worst) ? 'what calls with prompts of others take longer' : '',
      ),
      evidence: {
        ...{ request: worst.stalled_id, ...(worst.stalled_task !== null && { task: worst.stalled_task }) },
        ...{ by_request: worst.id, ...(worst.task !== null && { by_task: worst.task }) },
        ...{ stalled_ns: worst.prefill_ns, stalled_share: share, prompt_tokens: worst.prefill_tokens },
        ...{ overlap_ns: worst.overlap_ns, all_stalled_ns: ns, all_stalled_share: ns / requests.latency_ns },
      },
      check: {
        sql:
          `${WITH_REQUESTS}select sum(min(p.ts + p.dur, s.ts + s.dur) - max(p.ts, s.ts)) from ${requestParts(worst.id, ['prefill'])} p ` +
          `join ${requestParts(worst.stalled_id, ['stalled', 'decode', 'verify'])} s ` +
          'on p.ts < s.ts + s.dur and s.ts < p.ts + p.dur',
        evidence: 'overlap_ns',
      },
    })
  },
}

const latencyOf = ({ time_ns, share }: StallPair) => time_ns / share

function sentenceOf(pair: StallPair): string {
  const { stalled_id, stalled_task, id, task, prefill_ns, prefill_tokens } = pair
  const waited = `${nameOf(stalled_id, stalled_task)} waited ${time(prefill_ns)} (${percent(prefill_ns / latencyOf(pair))} of its latency)`
  const what =
    prefill_tokens > 0
      ? `${plural(prefill_tokens, 'token')} of the prompt of ${nameOf(id, task)} ${prefill_tokens === 1 ? 'was' : 'were'}`
      : `the prompt of ${nameOf(id, task)} was`
  return `${waited} while ${what} processed`
}

/** Is the larger part of a stall inferred? */
function isInferred({ requests }: Analysis, { stalled_id, prefill_ns }: StallPair): boolean {
  const row = requests!.slowest.find(({ id }) => id === stalled_id)
  return row !== undefined && row.stalled_inferred_ns > prefill_ns / 2
}
