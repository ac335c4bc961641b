import { CALLS } from '../run/losses.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { slicesIn } from './sql.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.05,
  why: 'a call has a few messages without a debug log, and a program that does not print them takes less than a microsecond for each',
}

/** The program takes messages for its log in calls. */
export const logOutput: Rule = {
  id: 'log-output',
  title: 'Calls write a log',
  limits: { share: SHARE },
  advice:
    'A lower verbosity (-lv 3 or less in llama.cpp), and no LLAMA_BATCH_DEBUG, LLAMA_KV_CACHE_DEBUG, GGML_SCHED_DEBUG in the environment. ' +
    'A program that sets a log function of its own (llama_log_set) should leave out messages of the level debug first, and not wait for a terminal or disk',
  covers: ['outside-graphs', 'between-calls'],
  look: (analysis) =>
    phasesOf(analysis).flatMap((callTime) => {
      const { phase, calls, time_ns } = callTime
      const loggedNs = partsNs(callTime, 'log output')
      if (loggedNs === 0) return []
      const share = loggedNs / time_ns
      const sentence = `${percent(share)} of ${phase} is output for the log: ${time(loggedNs / calls)} a call`
      if (share < SHARE.value) return [{ figure: sentence }]
      return found(sentence, {
        time_ns: loggedNs,
        ...confidenceOf(analysis, calls, [...CALLS, 'functions']),
        evidence: { phase, log_share: share, log_ns: loggedNs, calls },
        check: {
          sql: `select sum(s.dur) ${slicesIn(phase, 'function')} and s.name = 'write-log'`,
          evidence: 'log_ns',
        },
      })
    }),
}
