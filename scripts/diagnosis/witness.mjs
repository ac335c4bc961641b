/** What a run is without the recorder, measured by witness.c: the ground truth that findings of the recorded run are compared with. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './look.mjs'

/** What two runs of one program differ by, and what the recorder costs: shares may be so much outside the range, and by this factor. */
const WITHIN = { share: 0.02, factor: 1.2 }

/** Runs the command with the witness; the figures of its calls. The first call is the prompt, all others decode one token. */
async function witnessed(folder, before, command, { threads, prompt }) {
  const [library, out] = [join(folder, 'witness.so'), join(folder, 'witness.json')]
  rmSync(out, { force: true })
  const { code, stderr } = await run([...before, ...command], { env: { LD_PRELOAD: library, WITNESS_OUT: out } })
  if (code !== 0) throw new Error(`${command.join(' ')}: exit code ${code}\n${stderr}`)
  const calls = JSON.parse(readFileSync(out, 'utf8'))
  return figuresOf(
    calls.map((call) => ({ ...call, ns: call.end - call.start })),
    threads,
    prompt,
  )
}

const sum = (of, value) => of.reduce((total, item) => total + value(item), 0)
const mean = (of, value) => sum(of, value) / of.length

function figuresOf(calls, threads, prompt) {
  const [first, ...decode] = calls
  const phases = { prefill: [first], decode }
  const shares = Object.fromEntries(
    Object.entries(phases).map(([phase, of]) => {
      const [ns, graphs] = [sum(of, (call) => call.ns), sum(of, (call) => call.graphs)]
      return [
        phase,
        {
          outside: 1 - graphs / ns,
          barriers: sum(of, (call) => call.barriers) / (threads * ns),
          // All threads together: one of them may have waited all of it.
          waits: sum(of, (call) => call.waits) / ns,
          faults: mean(of, (call) => call.faults),
        },
      ]
    }),
  )
  const between = mean(decode.slice(1), (call) => call.start - calls[calls.indexOf(call) - 1].resumed)
  const tpot = between + mean(decode, ({ ns }) => ns)
  return {
    ...shares,
    between: between / tpot,
    samplers: sum(decode, (call) => call.samplers) / sum(decode, (call) => call.ns + call.samplers),
    first: first.ns / (prompt * mean(decode.slice(1), ({ ns }) => ns)),
    growth: growthOf(decode.map(({ ns }) => ns)),
  }
}

/** By how much a line through the times rises from the first to the last, in parts of their mean. */
function growthOf(times) {
  const middle = (times.length - 1) / 2
  const all = mean(times, (ns) => ns)
  const slope =
    sum(
      times.map((ns, i) => (i - middle) * (ns - all)),
      (value) => value,
    ) /
    sum(
      times.map((_, i) => (i - middle) ** 2),
      (v) => v,
    )
  return (slope * (times.length - 1)) / all
}

/** The range of each figure over several runs, wider by what two runs differ by. */
function rangesOf(runs) {
  if (typeof runs[0] !== 'number')
    return Object.fromEntries(Object.keys(runs[0]).map((key) => [key, rangesOf(runs.map((run) => run[key]))]))
  const { share, factor } = WITHIN
  return [Math.max(0, Math.min(...runs) / factor - share), Math.max(...runs) * factor + share]
}

/** The truth of a run: ranges of its figures. `times`: how often the witness runs it. */
export async function truthOf(folder, before, command, { threads, prompt }, times = 2) {
  const runs = []
  for (let i = 0; i < times; i++) runs.push(await witnessed(folder, before, command, { threads, prompt }))
  return rangesOf(runs)
}

const inRange = (value, [from, to]) => value >= from && value <= to
const atMost = (value, [, to]) => value <= to

/**
 * What the findings of a rule claim, and the range in which it is true. A rule without a line here has no measurement that could
 * confirm it: in a quiet run, its findings are false.
 */
const CLAIMS = {
  'outside-graphs': ({ phase, outside_share }, truth) => [outside_share, truth[phase]?.outside, inRange],
  'between-calls': ({ between_share }, truth) => [between_share, truth.between, inRange],
  'slow-samplers': ({ samplers_share }, truth) => [samplers_share, truth.samplers, inRange],
  'barrier-wait': ({ phase, lost_share }, truth) => [lost_share, truth[phase]?.barriers, inRange],
  'unbalanced-op': ({ phase, lost_share }, truth) => [lost_share, truth[phase]?.barriers, atMost],
  preempted: ({ phase, preempted_share }, truth) => [preempted_share, truth[phase]?.waits, atMost],
  'page-faults': ({ phase, major_faults, calls }, truth) => [
    (major_faults ?? Infinity) / (calls ?? 1),
    truth[phase]?.faults,
    atMost,
  ],
  'first-call': ({ call_ns, tokens, typical_token_ns }, truth) => [
    call_ns / tokens / typical_token_ns,
    truth.first,
    inRange,
  ],
  'context-growth': ({ ms_per_1000_tokens: slope, from_tokens: from, to_tokens: to, tpot_ns }, truth) => [
    (slope * 1e3 * (to - from)) / (tpot_ns ?? NaN),
    truth.growth,
    inRange,
  ],
}

/** Is a finding so? With what it claims and the range that the witness measured. */
export function checked({ rule, evidence }, truth) {
  const [claim, range, holds] = CLAIMS[rule]?.(evidence, truth) ?? []
  return { claim: claim ?? null, range: range ?? null, isTrue: range !== undefined && holds(claim, range) }
}
