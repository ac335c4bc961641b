import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { RequestEvent } from '../../lib/core.ts'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import type { Answer, Timings } from '../llama/client.ts'
import { EXACT, fullLoad, type LoadRequest, runLoad } from '../llama/load.ts'
import { PREPARE_MS, type Server, type ServerSource, servers, startServer } from '../llama/server.ts'
import { buildRecorder, RECORDER, readLog } from '../native/recording.ts'

/** A recorded server's requests are those that its clients sent, with the figures that the server itself states in its answers. */

const [MS, PART] = [1e6, 0.02]

/** Within 2 % or 1 ms. */
const isNear = (ns: number, ms: number) => Math.abs(ns - ms * MS) <= Math.max(MS, PART * ms * MS)

interface Sent extends LoadRequest {
  readonly answer: Answer
  /** What is recorded of it: two tasks of `choices`, else one. */
  readonly found: readonly RequestEvent[]
  /** The server's figures, one for each task. */
  readonly timings: readonly Timings[]
}

/** The last figures of each choice. */
const timingsOf = ({ documents }: Answer): Timings[] => {
  const last = new Map(documents.map(({ index = 0, timings }) => [index, timings]))
  return [...last.values()].flatMap((timings) => timings ?? [])
}

/** What a run must leave alone. A closed stream is compared as far as both have it. */
const outcomeOf = (answers: readonly Answer[]) =>
  answers.map(({ status, text, isClosed, documents }) => [
    status,
    isClosed ? text.slice(0, 8) : text,
    documents.at(-1)?.error,
  ])

for (const source of servers()) {
  const real = source.problem === undefined ? describe : describe.skip
  real(`requests of ${source.name} (${source.problem ?? 'real'})`, () => checkRequests(source))
}

function checkRequests(source: ServerSource): void {
  const load = fullLoad()
  let plain: readonly Answer[]
  let answers: readonly Answer[]
  let server: Server | undefined
  let requests: readonly RequestEvent[] = []
  let sent: readonly Sent[] = []
  let originNs = 0n
  let issues: readonly string[] = []
  let trace: OpenTrace | undefined

  beforeAll(source.prepare, PREPARE_MS)
  beforeAll(async () => {
    buildRecorder()
    const untraced = await startServer(source, EXACT)
    try {
      plain = await runLoad(untraced, load)
    } finally {
      await untraced.remove()
    }
    server = await startServer(source, { ...EXACT, recorder: RECORDER })
    answers = await runLoad(server, load)
    expect(await server.stop()).toBe(0)
    const log = await readLog(server.log)
    issues = log.issues
    originNs = log.of('input')[0]!.originNs
    requests = log.of('request')
    trace = await openTrace(convert(inputOf(server.log)))
    sent = load.map((request, i) => {
      const all = requests.filter(({ promptTokens }) => promptTokens === request.promptTokens)
      const found = all.sort((a, b) => a.task - b.task) // as the answer's choices
      return { ...request, answer: answers[i]!, found, timings: timingsOf(answers[i]!) }
    })
  })
  afterAll(async () => {
    trace?.close()
    await server?.remove()
  })

  const of = (...kinds: readonly LoadRequest['kind'][]) => sent.filter(({ kind }) => kinds.includes(kind))
  const all = <T>(value: T) => sent.map(() => value)

  test('its answers are those of the server without the recorder', () => {
    expect(outcomeOf(answers)).toEqual(outcomeOf(plain))
    expect(issues).toEqual([])
  })

  test('each request is there once, with its outcome', () => {
    const outcomes = { oversize: ['error'], choices: ['complete', 'complete'], closed: ['cancelled'] }
    for (const { kind, promptTokens, found } of sent) {
      if (kind === 'abandoned') continue
      const wanted = kind in outcomes ? outcomes[kind as keyof typeof outcomes] : ['complete']
      expect([kind, promptTokens, found.map(({ outcome }) => outcome)]).toEqual([kind, promptTokens, wanted])
    }
    // The server looks for a client that left once in a second.
    const known = new Set(sent.filter(({ kind }) => kind !== 'abandoned').flatMap(({ found }) => found))
    const others = requests.filter((request) => !known.has(request))
    expect(others.length).toBeLessThanOrEqual(of('abandoned').length)
    expect(others.filter(({ outcome }) => outcome !== 'cancelled' && outcome !== 'complete')).toEqual([])
    expect(of('embedding').flatMap(({ found }) => found.map(({ type }) => type))).toEqual(
      all('embedding').slice(0, of('embedding').length),
    )
    const tasks = requests.map(({ task }) => task)
    expect([Math.min(...tasks) >= 0, new Set(tasks).size]).toEqual([true, tasks.length])
  })

  test('its tokens are those of the server’s answers', () => {
    for (const { kind, promptTokens, found, timings } of of('completion', 'stream', 'grammar', 'choices')) {
      const figures = found.map((one) => [
        ...[kind, one.promptTokens, one.reusedTokens, one.generatedTokens, one.draftedTokens, one.acceptedTokens],
      ])
      expect(figures).toEqual(
        timings.map(({ cache_n, predicted_n, draft_n = 0, draft_n_accepted = 0 }) => [
          ...[kind, promptTokens, cache_n, predicted_n, draft_n, draft_n_accepted],
        ]),
      )
      expect(timings.map(({ cache_n, prompt_n }) => cache_n + prompt_n)).toEqual(timings.map(() => promptTokens))
    }
    for (const { found, timings } of of('closed')) {
      expect(found.map(({ reusedTokens }) => reusedTokens)).toEqual(timings.map(({ cache_n }) => cache_n))
      expect(found[0]!.generatedTokens).toBeGreaterThanOrEqual(timings[0]!.predicted_n)
    }
  })

  test('its times are those of the server’s answers', () => {
    const compared = of('completion', 'stream', 'grammar', 'choices').flatMap(
      ({ kind, promptTokens, found, timings }) =>
        found.map(({ parts, launchNs, firstTokenNs }, i) => {
          const { prompt_ms, predicted_ms } = timings[i]!
          const calledNs = parts.find(({ what }) => what === 'prefill')?.startNs
          const sampledNs = parts.findLast(({ what }) => what === 'sample')!.endNs
          // The server's time of the prompt starts between the launch and the first call. The second choice has no call for its prompt.
          const isPrompt =
            isNear(firstTokenNs - (calledNs ?? launchNs), prompt_ms) ||
            (firstTokenNs - (calledNs ?? firstTokenNs) < prompt_ms * MS && prompt_ms * MS < firstTokenNs - launchNs)
          const isSame = isPrompt && isNear(sampledNs - firstTokenNs, predicted_ms)
          const times = { launchNs, calledNs, firstTokenNs, sampledNs }
          return { kind, isSame, promptTokens, ...times, prompt_ms, predicted_ms }
        }),
    )
    // A busy machine may stop the server's thread just before it reads its clock: a few of them, none of whose kind are all off.
    const off = compared.filter(({ isSame }) => !isSame)
    const isChance = ({ kind }: (typeof off)[number]) => compared.some((other) => other.kind === kind && other.isSame)
    expect(off.length <= compared.length / 4 && off.every(isChance) ? [] : off).toEqual([])
  })

  test('its times lie within those of its clients', () => {
    const complete = of('completion', 'stream', 'grammar', 'choices', 'embedding', 'oversize')
    const around = complete.flatMap(({ kind, found, answer: { sentNs, lastNs } }) =>
      found.map(({ startNs, endNs, parts }) => {
        const [before, after] = [Number(originNs - sentNs) + startNs, Number(lastNs - originNs) - endNs]
        return { kind, before, after, last: parts.at(-1)?.what }
      }),
    )
    expect(around.filter(({ before, after }) => before < 0 || after < 0)).toEqual([])
    // What lies around: the server reads the request and writes the answer. Other programs lengthen it, nothing shortens it.
    expect(Math.min(...around.map(({ before, after }) => before + after))).toBeLessThan(10 * MS)
  })

  test('the parts of each request cover its latency', () => {
    for (const { startNs, endNs, parts } of requests) {
      const borders = parts.flatMap(({ startNs, endNs }) => [startNs, endNs])
      expect([borders[0], borders.at(-1)]).toEqual([startNs, endNs])
      const sum = parts.reduce((total, { startNs, endNs }) => total + endNs - startNs, 0)
      expect(Math.abs(sum - (endNs - startNs))).toBeLessThanOrEqual(0.01 * (endNs - startNs))
      expect(borders).toEqual([...borders].sort((a, b) => a - b))
    }
  })

  test('the trace has a slice of each with the same figures, and parts that sum to its latency', () => {
    expect(trace!.problems()).toEqual([])
    const figures = ['task', 'prompt_tokens', 'reused_tokens', 'generated_tokens', 'latency_ns']
    const columns = figures.map((name) => `extract_arg(arg_set_id, 'debug.${name}')`).join(', ')
    const { rows } = trace!.query(`select ${columns} from slice where category = 'request' order by 1`)
    const known = (value: number) => (value < 0 ? null : value)
    const wanted = [...requests].sort((a, b) => a.task - b.task)
    expect(rows).toEqual(
      wanted.map(({ task, promptTokens, reusedTokens, generatedTokens, startNs, endNs }) => [
        ...[task, known(promptTokens), known(reusedTokens), known(generatedTokens), endNs - startNs],
      ]),
    )
    const sums = `select sum(dur) from slice where category = 'request_part'
      group by extract_arg(arg_set_id, 'debug.request') order by extract_arg(arg_set_id, 'debug.request')`
    const byId = [...requests].sort((a, b) => a.id - b.id)
    expect(trace!.query(sums).rows).toEqual(byId.map(({ startNs, endNs }) => [endNs - startNs]))
  })
}
