import { readFileSync } from 'node:fs'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { Answer, Ask } from '../llama/client.ts'
import { PREPARE_MS, type Server, type ServerOptions, servers, startServer } from '../llama/server.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { Kind, readLog as recordsOf } from './log-checker.ts'
import { buildRecorder, NANO, RECORDER, readLog, recordHosts, useRecorder } from './recording.ts'
import '../live.ts'

/** The tasks of a real llama-server, and the lines of its log: what the recorder writes of them, by the format's page. */

const STEPS = { 0: 'post', 1: 'defer', 2: 'resume', 3: 'launch', 11: 'release', 12: 'send', 13: 'cancel', 14: 'error' }
const [FACT, TASK, MESSAGE] = [1, 60, 61]

interface Step {
  readonly at: bigint
  readonly step: string
  readonly task: number
  readonly slot: number
}

/** The TASK and MESSAGE records of a log, by time, and its facts. */
function readServer(log: string) {
  const { view, blocks } = recordsOf(readFileSync(log))
  const text = (at: number) => Buffer.from(view.buffer, view.byteOffset + at + 4, view.getUint32(at, true)).toString()
  const steps: Step[] = []
  const lines: { at: bigint; text: string }[] = []
  const facts: Record<string, string> = {}
  for (const { kind, records } of blocks)
    for (const { type, offset } of records) {
      // Only after the type is known: the records of other types may be shorter than the fields of these.
      const at = () => view.getBigUint64(offset + 4, true)
      const number = (to: number) => view.getInt32(offset + to, true)
      const step = () => STEPS[number(12) as keyof typeof STEPS]
      if (type === TASK) steps.push({ at: at(), step: step(), task: number(16), slot: number(20) })
      if (type === MESSAGE) lines.push({ at: at(), text: text(offset + 16) })
      if (kind === Kind.run && type === FACT) facts[text(offset + 4)] = text(offset + 8 + Math.ceil(number(4) / 4) * 4)
    }
  const byTime = (a: { at: bigint }, b: { at: bigint }) => Number(a.at - b.at)
  return { steps: steps.sort(byTime), lines: lines.sort(byTime).map(({ text }) => text), facts }
}

const COMPLETION = '/completion'
const completion = (prompt: string, n_predict: number, more = {}): Ask => ({
  path: COMPLETION,
  body: { prompt, n_predict, temperature: 0, ignore_eos: true, ...more },
})

for (const source of servers()) {
  const real = source.problem === undefined ? describe : describe.skip

  real(`${source.name} (${source.problem ?? 'real'})`, () => {
    let server: Server
    beforeAll(buildRecorder)
    beforeAll(source.prepare, PREPARE_MS)
    afterEach(() => server?.remove())

    const start = async (args: ServerOptions['args'], recorder: string | undefined = RECORDER) => {
      server = await startServer(source, { model: 'tinyMoe', args: [...args!, '-t', 1], ...(recorder && { recorder }) })
    }
    const read = async () => {
      expect(await server.stop()).toBe(0)
      return readServer(server.log)
    }

    test('every request is posted once, waits for a slot, is launched in it, is sent, and leaves it', async () => {
      await start(['-c', 4096, '-np', 2, '--slots', '--metrics'])
      const asks = [3, 2, 40, 5, 60].map((words, i) =>
        completion('w1 w2 w3 '.repeat(words), 50, { stream: i % 2 === 0 }),
      )
      const answers = await Promise.all([
        ...asks.map(server.ask),
        ...['/slots', '/metrics'].map((path) => fetch(`${server.url}${path}`).then(({ ok }) => expect(ok).toBe(true))),
      ])
      const { steps, lines, facts } = await read()
      const of = (wanted: string) => steps.filter(({ step }) => step === wanted)
      const tasks = of('post').map(({ task }) => task)
      expect([new Set(tasks).size, tasks.length]).toEqual([asks.length, asks.length])
      expect(
        of('launch')
          .map(({ task }) => task)
          .sort(),
      ).toEqual(tasks.sort())
      for (const { task, slot, at } of of('launch')) {
        const sent = of('send').filter((step) => step.task === task)
        const released = of('release').find((step) => step.slot === slot && step.at > at)!
        const next = of('launch').find((step) => step.slot === slot && step.at > at)
        expect(of('post').find((step) => step.task === task)!.at).toBeLessThan(at)
        expect(sent.length).toBeGreaterThan(0)
        for (const step of sent) expect([step.at > at, step.at < released.at]).toEqual([true, true])
        if (next) expect(released.at).toBeLessThan(next.at)
      }
      // Two slots, five requests at the same time: what waits has been deferred, and goes on when a slot is free.
      expect(of('defer').length).toBeGreaterThan(0)
      expect(of('resume')).toHaveLength(of('defer').length)
      expect([of('cancel'), of('error')]).toEqual([[], []])
      expect(
        of('launch')
          .map(({ slot }) => slot)
          .sort(),
      ).toEqual((answers.slice(0, 5) as Answer[]).map(({ documents }) => documents.at(-1)!.id_slot).sort())
      expect(Object.keys(facts).filter((key) => key.startsWith('server.'))).toEqual([])

      const launched = lines.flatMap(
        (line) => /^slot launch_slot_: id +(\d+) \| task (\d+) \| processing/.exec(line) ?? [],
      )
      expect(launched.filter((_, i) => i % 3 !== 0).map(Number)).toEqual(
        of('launch').flatMap(({ task, slot }) => [slot, task]),
      )
      const computed = lines.flatMap((line) => /prompt eval time =.*\/ +(\d+) tokens/.exec(line)?.[1] ?? [])
      expect(computed.map(Number).sort()).toEqual(
        (answers.slice(0, 5) as Answer[]).map(({ timings }) => timings!.prompt_n).sort(),
      )
    })

    test('a client that leaves, a prompt that is too long, a grammar that is none', async () => {
      await start(['-c', 256, '-np', 1])
      await server.ask({ ...completion('w1 w2', 240, { stream: true }), closeAfter: 2 })
      const oversize = await server.ask(completion('w1 '.repeat(300), 4))
      const wrong = await server.ask(completion('w1', 4, { grammar: 'root ::= SECRET {{' }))
      expect([oversize.status, wrong.status]).toEqual([400, 400])
      const { steps, lines } = await read()
      const [left, long, none] = steps.filter(({ step }) => step === 'post').map(({ task }) => task)
      const of = (task: number | undefined) => steps.filter((step) => step.task === task).map(({ step }) => step)
      expect(of(left)).toEqual(expect.arrayContaining(['post', 'launch', 'send', 'cancel']))
      // The server cancels what failed, too.
      expect(of(long)).toEqual(['post', ...of(long).filter((step) => step === 'defer'), 'launch', 'error', 'cancel'])
      expect(of(none)).toEqual(['post', 'launch', 'error', 'cancel'])
      const errors = lines.flatMap((line) => /task id = (\d+), error: (.*)$/.exec(line)?.slice(1) ?? [])
      const { message } = oversize.documents[0]!.error!
      expect(errors).toEqual([`${long}`, message, `${none}`, 'Failed to initialize samplers'])
      const { of: events, text } = await readLog(server.log)
      const requests = events('request').map(({ task, outcome, error }) => [task, outcome, text(error ?? 0)])
      expect(requests.sort()).toEqual(
        [
          [left, 'cancelled', ''],
          [long, 'error', message],
          [none, 'error', 'Failed to initialize samplers'],
        ].sort(),
      )
    })

    test('with all of its debugging output, the log contains no prompt and no answer, and the output is as without', async () => {
      const secret = 'SECRETPROMPT'
      const texts = [`${secret} ${'abc '.repeat(700)}`, `${'abc '.repeat(10)}${secret}`]
      const ask = async (): Promise<{ answers: string[]; lines: string[] }> => {
        const answers: string[] = []
        for (const text of texts) answers.push((await server.ask(completion(text, 6, { stop: [secret] }))).text)
        const messages = [{ role: 'user', content: `${secret}: hello` }]
        await server.ask({ path: '/v1/chat/completions', body: { messages, max_tokens: 4 } })
        await server.ask(completion('x', 2, { grammar: `root ::= ${secret} {{` }))
        await server.ask({ path: '/v1/chat/completions', body: { messages: [{ role: secret, content: [secret] }] } })
        expect(await server.stop()).toBe(0)
        const lines = server
          .output()
          .split('\n')
          .map((line) => line.replace(/^[\d.]+ /, ''))
        return { answers, lines: lines.filter((line) => line.includes(secret)).sort() }
      }
      const args = ['-c', 8192, '-np', 1, '-lv', 5, '--log-timestamps', '--log-prefix']
      await start(args, '')
      const plain = await ask()
      await server.remove()
      await start(args)
      const recorded = await ask()
      expect(recorded).toEqual(plain)
      // Longer than the recorder's buffer, too.
      expect(Math.max(...plain.lines.map(({ length }) => length))).toBeGreaterThan(2500)
      const bytes = readFileSync(server.log)
      const { lines } = readServer(server.log)
      expect([bytes.includes(secret), bytes.includes('abc abc')]).toEqual([false, false])
      expect(lines.filter((line) => /token, id=|next token|sampled=|prompt token/.test(line))).toEqual([])
      expect(lines.filter((line) => /cached n_tokens|stopped by limit/.test(line)).length).toBeGreaterThan(2)
    })
  })
}

const llama = hasLlama() ? describe : describe.skip

llama('a llama-server without functions to interpose', () => {
  useRecorder()
  test('is a fact of the log; other programs have none', async () => {
    const { path } = await model(NANO)
    const steps = ['load', 0, path, 'open', 0, 1, 'decode', 0, 1]
    const factsOf = async (before: readonly string[]) => readServer((await recordHosts(steps, { before })).log).facts
    const missing = 'posts, deferrals, cancellations, results, slots, log'
    expect(await factsOf(['bash', '-c', 'exec -a llama-server "$0" "$@"'])).toHaveProperty(['server.missing'], missing)
    expect(await factsOf([])).not.toHaveProperty(['server.missing'])
  })
})
