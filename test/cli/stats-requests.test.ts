import { writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { logOfRequests, type MadePart } from '../analyze/requests/made-requests.ts'
import { at, MOE, run, useFolder } from './helpers.ts'

useFolder()

const MS = 1e6
const ms = (...parts: (readonly [MadePart[0], number, MadePart[2]?])[]): MadePart[] =>
  parts.map(([what, until, of = {}]) => [what, until * MS, of])

const LOG = logOfRequests([
  {
    startNs: 0,
    firstTokenNs: 12 * MS,
    ...{ promptTokens: 10, reusedTokens: 4, generatedTokens: 3, lost: { position: 4, tokens: 6 } },
    parts: ms(
      ['queued', 1],
      ['prefill', 11, { tokens: 6 }],
      ['sample', 12],
      ['stalled', 112, { others: 1, othersTokens: 500 }],
      ['decode', 132, { tokens: 1 }],
    ),
  },
  { startNs: 12 * MS, outcome: 'cancelled', promptTokens: 500, parts: ms(['prefill', 112, { tokens: 500 }]) },
])

beforeAll(async () => {
  writeFileSync(at('server.json'), JSON.stringify(await analyze(LOG, { series: ['requests'] })))
})

const printed = (...args: string[]) => {
  const { code, stdout, stderr } = run(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

test('sections of requests in the statistics', () => {
  const text = printed('stats', '--full', 'server.json')
  expect(text).toContain('requests      1 complete, 1 cancelled\n')
  expect(text).toMatch(/latency +116 ms: p50 10\d ms, p90 13\d ms, p99 13\d ms, max 132 ms\n/)
  expect(text).toMatch(/reused +4 of 10 tokens of prompts, 40.0 %\n/)
  expect(text).toMatch(/lost reuse +6 tokens of 1 request were processed in place of others in the cache: 10 ms\n/)
  expect(text).toMatch(/not complete +1 request: 100 ms of work; 500 tokens of prompts\n/)
  expect(text).toMatch(/prefill +110 ms +47.4 %\n/)
  expect(text).toMatch(
    /waited +for +time +of its latency +in its prompt +tokens\n +task 101 +task 102 +100 ms +75.8 % +100 ms +500\n/,
  )
  expect(printed('stats', 'server.json', '--markdown')).toContain('- requests: 1 complete, 1 cancelled\n')
})

test('a row of each request or slot: text, CSV, Markdown', () => {
  const text = printed('stats', 'server.json', '--by', 'request')
  expect(text).toMatch(/^\d+ requests, p50 .*\n\nrequests\n/)
  expect(text.split('\n')[3]).toMatch(/^ +request +task +slot .* latency +TTFT +TPOT .* queued +prefill +decode /)
  expect(text.split('\n')[4]).toMatch(/^ +1 +101 +0 .* 132 ms +12 ms +60 ms +10 +4 +3 .* 1 ms +10 ms +20 ms +100 ms/)
  const [head, first, ...others] = printed('stats', 'server.json', '--by', 'request', '--csv').trimEnd().split('\n')
  const row = Object.fromEntries(head!.split(',').map((key, i) => [key, first!.split(',')[i]]))
  expect(row).toMatchObject({ id: '1', latency_ns: '132000000', stalled_ns: '100000000', stalled_by: 'task 102' })
  expect(others.length).toBe(1)
  expect(printed('stats', 'server.json', '--by', 'slot', '--markdown')).toMatch(/\| 1 \| 1 \| 100 ms \| 500 \|/)
  expect(printed('stats', 'server.json', '--by', 'slot', '--top', '1', '--csv').split('\n').length).toBe(3)
})

test('what the time of one answer went to, by task and by number', () => {
  const text = printed('why', 'server.json', '--task', '101')
  expect(text.split('\n').slice(0, 5)).toEqual([
    'task 101, request 1, slot 0: completion, complete; latency 132 ms, TTFT 12 ms, TPOT 60 ms',
    '1. 100 ms (76 %): it waited while others were worked on: 100 ms for task 102 (500 tokens of its prompt)',
    '2. 20 ms (15 %): calls computed its tokens: 3 tokens, 10 ms each after the first',
    '3. 10 ms (7.6 %): calls processed 6 of 10 tokens of its prompt, 4 were in the cache, 600 tokens/s',
    '4. 1 ms (0.76 %): it waited in a queue',
  ])
  expect(text).toContain(
    '6 tokens of its prompt were processed though the slot had 6 others from there on: token 4 differs',
  )
  expect(printed('why', 'server.json', '--request', '1')).toBe(text)
  expect(printed('why', 'server.json', '--request', '1', '--task', '101')).toBe(text)
  const json = JSON.parse(printed('why', 'server.json', '--request', '2', '--json'))
  expect(json).toMatchObject({ request: { id: 2 }, reasons: [{ part: 'prefill_ns', time_ns: 1e8, share: 1 }] })
})

test('mistakes', () => {
  const error = (...args: string[]) => {
    const { code, stderr } = run(args)
    expect(code).toBe(1)
    return stderr
  }
  expect(error('why', 'server.json', '--request', '7')).toBe(
    'error: --request 7: no such request among requests 1 to 2, tasks 101 to 102\nhint: ggml2perfetto stats <logs> --by request lists them\n',
  )
  expect(error('stats', 'server.json', '--by', 'request,op')).toContain(
    'request is a table of requests; expected it alone',
  )
  expect(error('stats', 'server.json', '--by', 'slot', '--sort', 'wall')).toContain('--sort is for operators')
  expect(error('stats', MOE, '--by', 'request')).toContain('the log contains no requests')
  expect(error('why', 'server.json', '--request', '101')).toBe(
    'error: --request 101: no request has this number, but request 1 (task 101) has this task\nhint: --task 101\n',
  )
  expect(error('why', 'server.json', '--task', '2')).toBe(
    'error: --task 2: no task has this number, but request 2 (task 102) does\nhint: --request 2\n',
  )
  expect(error('why', 'server.json', '--request', '1', '--task', '102')).toBe(
    'error: --request 1 --task 102: expected the numbers of one request, found those of request 1 (task 101) and request 2 (task 102)\n',
  )
  expect(error('why', MOE, '--request', '1')).toContain('the log contains no requests')
})
