import { expect, test } from '@jest/globals'
import { toText } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { lookedAt } from '../../lib/analysis.ts'
import { type Analysis, analyze, type EventInput, eventsOf, type TraceEvent } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { STORED_LOGS } from './stored-logs.ts'

/** Every share is a share of something that the log contains: in the Analysis, in its sentences, and in what `stats` and reports print of it. */

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
const isTimed = ({ inputs }: Analysis) => inputs.some(({ times }) => times === 'recorded')
const devicesOf = ({ gpu }: Analysis) => gpu?.devices ?? []

/** What shares are of, and whether a log contains it. */
const OF = {
  'calls, of wall time': (analysis: Analysis) =>
    isTimed(analysis) && sum(analysis.call_time.map(({ time_ns }) => time_ns)) > 0,
  'decode, of wall time': (analysis: Analysis) => isTimed(analysis) && timeOf(analysis, 'decode') > 0,
  'prefill, of wall time': (analysis: Analysis) => isTimed(analysis) && timeOf(analysis, 'prefill') > 0,
  'mixed, of wall time': (analysis: Analysis) => isTimed(analysis) && timeOf(analysis, 'mixed') > 0,
  'compute, of wall time': (analysis: Analysis) => isTimed(analysis) && timeOf(analysis, 'compute') > 0,
  'the time per token': ({ calls }: Analysis) => (calls.tpot_ns ?? 0) > 0,
  'the mean time per token': ({ calls }: Analysis) => calls.slope !== null,
  'the time to the first token': ({ first_token }: Analysis) => (first_token?.time_ns ?? 0) > 0,
  loading: ({ load }: Analysis) => load !== null,
  'operators of workers': ({ operators }: Analysis) => operators.operator_time_ns > 0,
  "the time of workers' graphs": (analysis: Analysis) => isTimed(analysis) && analysis.workers.length > 0,
  'the time of workers in calls': ({ scheduling }: Analysis) => scheduling !== null,
  "a device's work": (analysis: Analysis) =>
    devicesOf(analysis).some(({ kinds, kernels }) => kinds.length > 0 || kernels.length > 0),
  "a device's time": (analysis: Analysis) => hasDeviceTime(analysis),
  'operators of the CPU': ({ host_operators }: Analysis) => host_operators !== null,
  'readings of power': ({ power }: Analysis) => (power?.devices.length ?? 0) > 0,
  'latencies of requests': ({ requests }: Analysis) => requests !== null && requests.count > 0,
  'tokens of prompts': ({ requests }: Analysis) => (requests?.reuse.prompt_tokens ?? 0) > 0,
  'drafted tokens': ({ calls, requests, speculation }: Analysis) =>
    calls.drafts !== null || requests?.drafts != null || speculation !== null,
  'time of sampled tokens': ({ sampling }: Analysis) => sampling !== null,
  'choices of experts': ({ experts }: Analysis) => experts !== null,
  'bytes of memory': ({ memory }: Analysis) => memory !== null,
  'bytes of weights': ({ run }: Analysis) => run.weights !== null,
  'what hardware can do': ({ rooflines, kernel_profiles }: Analysis) =>
    rooflines.length > 0 || kernel_profiles !== null,
  'a ceiling': (analysis: Analysis) =>
    analysis.verdict.unit === 'busy' ? hasDeviceTime(analysis) : OF['what hardware can do'](analysis),
  'sums of a profiler': ({ kernel_profiles }: Analysis) => kernel_profiles !== null,
  benchmarks: ({ benchmarks }: Analysis) => benchmarks.length > 0,
  samples: ({ page_faults, data_accesses }: Analysis) => page_faults !== null || data_accesses !== null,
  'pages of nodes': ({ numa }: Analysis) => numa !== null,
}
type Of = keyof typeof OF

const hasDeviceTime = (analysis: Analysis): boolean =>
  isTimed(analysis) && devicesOf(analysis).some(({ time, times }) => time !== null && times !== 'durations')
const timeOf = ({ call_time }: Analysis, of: string) =>
  sum(call_time.flatMap(({ phase, time_ns }) => (phase === of ? time_ns : [])))

/** Shares in the Analysis, by their path. */
const FIELDS: readonly (readonly [path: RegExp, of: Of])[] = [
  [/^call_time\./, 'calls, of wall time'],
  [/^calls\.drafts\./, 'drafted tokens'],
  [/^experts\./, 'choices of experts'],
  [/^first_token\./, 'the time to the first token'],
  [/^gpu\.devices\.(?:steps\.)?time\./, "a device's time"],
  [/^gpu\.devices\.(?:kernels|kinds|launchers\.rows)\./, "a device's work"],
  [/^imbalance\./, 'operators of workers'],
  [/^kernel_profiles\./, 'sums of a profiler'],
  [/^memory\./, 'bytes of memory'],
  [/^power\./, 'readings of power'],
  [/^requests\.drafts\./, 'drafted tokens'],
  [/^requests\.reuse\./, 'tokens of prompts'],
  [/^requests\./, 'latencies of requests'],
  [/^rooflines\./, 'what hardware can do'],
  [/^verdict\.ceiling/, 'a ceiling'],
  [/^sampling\./, 'time of sampled tokens'],
  [/^speculation\./, 'drafted tokens'],
  [/^workers\./, "the time of workers' graphs"],
  [/^scheduling\./, 'the time of workers in calls'],
  [/^threads\./, 'calls, of wall time'],
  [/^numa\./, 'pages of nodes'],
  [/^(?:page_faults|data_accesses)\./, 'samples'],
]

/** Sentences with shares: all that fit must hold, and one must fit. */
const SENTENCES: readonly (readonly [text: RegExp, of: Of])[] = [
  [/ % of decode\b|\bdecode(?:: (?:its )?workers are blocked| to an uneven split)/, 'decode, of wall time'],
  [/ % of prefill\b|\bprefill(?:: (?:its )?workers are blocked| to an uneven split)/, 'prefill, of wall time'],
  [/ % of mixed\b|\bmixed(?:: (?:its )?workers are blocked| to an uneven split)/, 'mixed, of wall time'],
  [/ % of compute\b|\bcompute(?:: (?:its )?workers are blocked| to an uneven split)/, 'compute, of wall time'],
  [/ % of the time of calls| % of other work/, 'calls, of wall time'],
  [/ % of the time per token/, 'the time per token'],
  [/ % of its mean from /, 'the mean time per token'],
  [/ % of (?:the time of tokens|decoding)\b/, 'time of sampled tokens'],
  [
    /(?:^|[:;,] )GPU \S+(?: \([^)]*\))? (?:busy|copies|waits|moves|communicates)\b.* % of| % of the time, and does nothing else meanwhile/,
    "a device's time",
  ],
  [/ % of the readings/, 'readings of power'],
  [/ % of drafted tokens/, 'drafted tokens'],
  [
    / % of (?:its|their|the) latency|\btook [\d. ]+\w+ \(\d+ %\)| % of the work was for requests/,
    'latencies of requests',
  ],
  [/ % of the [\d. ]+ tok\/s | % of this machine's peak/, 'what hardware can do'],
  [/ % busy\b| % of their sectors/, 'sums of a profiler'],
]

/** Sections of `stats` and of reports with shares, by their title. */
const SECTIONS: readonly (readonly [title: RegExp, of: Of])[] = [
  [/^(?:time of )?calls/, 'calls, of wall time'],
  [/^speculative decoding$/, 'drafted tokens'],
  [/^operators$/, 'operators of workers'],
  [/^workers$/, 'operators of workers'],
  [/^threads of workers in calls/, 'the time of workers in calls'],
  [/^machine and threads$/, 'calls, of wall time'],
  [/^GPU\b/, "a device's work"],
  [/^operators of the CPU$/, 'operators of the CPU'],
  [/^power$/, 'readings of power'],
  [/^requests$/, 'latencies of requests'],
  [/^sampling$/, 'time of sampled tokens'],
  [/^loading$/, 'loading'],
  [/^first token$/, 'the time to the first token'],
  [/^experts\b/, 'choices of experts'],
  [/^memory$/, 'bytes of memory'],
  [/^run$/, 'bytes of weights'],
  [/^roofline$/, 'what hardware can do'],
  [/^kernels by Nsight Compute$/, 'sums of a profiler'],
  [/^benchmarks$/, 'benchmarks'],
]

/** Rows of a device in `stats` that are parts of its time. */
const OF_TIME = /^ *(?:computation|exposed copies|idle|waits for launches|all|overlap)\b.* % *$/

/** What is a share of what the log does not contain, or of what no table above contains. */
function wrongIn(analysis: Analysis): string[] {
  const wrong: string[] = []
  const check = (where: string, of: readonly Of[]) => {
    const missing = of.filter((name) => !OF[name](analysis))
    if (of.length === 0) wrong.push(`${where}: of what?`)
    for (const name of missing) wrong.push(`${where}: of ${name}, which the log does not contain`)
  }
  const inText = (text: string) => SENTENCES.flatMap(([pattern, of]) => (pattern.test(text) ? [of] : []))
  for (const path of sharesIn({ ...analysis, findings: [], verdict: { ...analysis.verdict, cause: null } })) {
    const [, of] = FIELDS.find(([pattern]) => pattern.test(path)) ?? []
    check(path, of ? [of] : [])
  }
  for (const sentence of sentencesOf(analysis)) check(sentence, inText(sentence))
  const shown = { top: 50, by: ['role', 'op'], sort: 'wall', isPublic: false, calls: false, experts: true } as const
  for (const section of sectionsOf(analysis, shown as never)) {
    const [title = '', ...lines] = toText([section], 240).filter((line) => / %/.test(line) || !line.startsWith(' '))
    if (title === 'findings' || lines.length === 0 || / %/.test(title)) continue
    const [, of] = SECTIONS.find(([pattern]) => pattern.test(title)) ?? []
    const ofTime = title.startsWith('GPU') && lines.some((line) => OF_TIME.test(line))
    check(`stats: ${title}`, [...(of ? [of] : []), ...(ofTime ? ["a device's time" as const] : [])])
  }
  const report = reportHtml(analysis)
    .replace(/<(script|style|svg)\b[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]+>/g, '\n')
  for (const line of report.split('\n')) for (const of of inText(line)) check(`report: ${line.trim()}`, [of])
  return [...new Set(wrong)]
}

function sentencesOf(analysis: Analysis): string[] {
  const { verdict, findings } = analysis
  const looked = lookedAt(analysis).flatMap(({ figures }) => figures.map(({ figure }) => figure))
  return [verdict.sentence, ...findings.map(({ sentence }) => sentence), ...looked].filter((text) => / %/.test(text))
}

/** Paths of all shares, without numbers of rows. */
function sharesIn(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => sharesIn(one, path))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([key, one]) => sharesIn(one, path === '' ? key : `${path}.${key}`))
  return typeof value === 'number' && /share(?:$|\.)/.test(path) ? [path] : []
}

/** The log without events of a kind. */
const without = (log: string, left: TraceEvent['kind']): EventInput => ({
  name: 'log',
  async *events(names) {
    for await (const batch of eventsOf(inputOf(log), names)) yield batch.filter(({ kind }) => kind !== left)
  },
})

/** Wrong shares of all stored logs. */
async function wrongOfAll(inputOfLog: (log: string) => Parameters<typeof analyze>[0]) {
  const wrong: string[] = []
  let analysed = 0
  for (const log of STORED_LOGS) {
    const analysis = await analyze(inputOfLog(log)).catch(({ name }) => {
      // Companions, and files that are no log.
      expect([log, name]).toEqual([log, expect.stringMatching(/^(?:UsageError|FormatError)$/)])
    })
    if (!analysis) continue
    analysed++
    wrong.push(...wrongIn(analysis).map((text) => `${log.replace(/^.*\/(?=[^/]+\/[^/]+$)/, '')}: ${text}`))
  }
  expect(analysed).toBeGreaterThan(150)
  return wrong
}

test('of stored logs', async () => {
  expect(await wrongOfAll((log) => inputOf(log))).toEqual([])
})

test.each([
  ['calls', 'token'],
  ['operators', 'operator'],
] as const)('of the same logs without %s', async (_, kind) => {
  expect(await wrongOfAll((log) => without(log, kind))).toEqual([])
})
