import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from '@jest/globals'
import { randomOf } from '../../scripts/random.mjs'
import { at, folder, HANGS_MS, useFolder } from '../cli/helpers.ts'
import { inLong, isLong } from '../long.ts'
import { SERVER } from './helpers.ts'

/** Lines that no client of ours writes: each that is no notification has one answer that JSON-RPC allows, and the server answers the next one. */

useFolder()

const MIB = 1 << 20
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

// biome-ignore lint/suspicious/noExplicitAny: answers of several methods
type Message = Record<string, any>

/** A server that is written to byte by byte. */
class Wire {
  readonly child: ChildProcess
  readonly answers: Message[] = []
  /** What is no line of JSON. */
  readonly junk: string[] = []
  stderr = ''
  #rest = ''
  #pings = 0

  constructor() {
    mkdirSync(at('logs'), { recursive: true })
    this.child = spawn(process.execPath, [SERVER, '--folder', 'logs'], { cwd: folder, stdio: 'pipe' })
    children.push(this.child)
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${this.#rest}${text}`.split('\n')
      this.#rest = lines.pop()!
      for (const line of lines) this.#take(line)
    })
    this.child.stderr!.on('data', (text: Buffer) => {
      this.stderr += text
    })
    this.child.stdin!.on('error', () => undefined)
  }

  #take(line: string): void {
    try {
      this.answers.push(JSON.parse(line))
    } catch {
      this.junk.push(line)
    }
  }

  async write(data: string | Uint8Array): Promise<void> {
    if (!this.child.stdin!.write(data)) await new Promise((resolve) => this.child.stdin!.once('drain', resolve))
  }

  async until(holds: () => boolean): Promise<void> {
    for (const end = Date.now() + HANGS_MS; !holds(); await sleep(5)) {
      if (this.child.exitCode !== null) throw new Error(`the server ended:\n${this.stderr}`)
      if (Date.now() > end) throw new Error(`no answer:\n${this.stderr}`)
    }
  }

  /** What was answered until a request after it was; the answers of both lines may be in any order. */
  async answersTo(data: string | Uint8Array, count: number): Promise<Message[]> {
    const before = this.answers.length
    const ping = `ping ${++this.#pings}`
    await this.write(data)
    await this.write('\n')
    await this.write(`${JSON.stringify({ jsonrpc: '2.0', id: ping, method: 'ping' })}\n`)
    const isPing = ({ id }: Message) => id === ping
    const since = () => this.answers.slice(before)
    await this.until(() => since().some(isPing) && since().length > count)
    return since().filter((answer) => !isPing(answer))
  }

  /** What the server answers until it ends after its input did. */
  async end(data: string | Uint8Array): Promise<Message[]> {
    const closed = new Promise((resolve) => this.child.once('close', resolve))
    this.child.stdin!.end(data)
    await closed
    return this.answers
  }
}

const nested = (depth: number, key: string, before = '') =>
  `{"jsonrpc":"2.0",${before}"method":"tools/call","params":{"name":"summary","arguments":{"${key}":${'['.repeat(depth)}${']'.repeat(depth)}}},"id":7}`

const call = (id: string, rest = '"method":"ping"') => `{"jsonrpc":"2.0","id":${id},${rest}}`
const error = (id: unknown, code: number, message = /./) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message: expect.stringMatching(message) },
})
const done = (id: unknown) => ({ jsonrpc: '2.0', id, result: expect.anything() })
const LATE = -32000
const [PARSE, INVALID, METHOD, PARAMS, INTERNAL] = [-32700, -32600, -32601, -32602, -32603]

const LINES: readonly (readonly [what: string, line: string | Uint8Array, answer: unknown])[] = [
  ['no JSON', 'hello', error(null, PARSE)],
  ['a part of a request', '{"jsonrpc":"2.0","id":1,"method":"ping"', error(null, PARSE)],
  ['a character NUL', '\0', error(null, PARSE)],
  ['a request with NUL behind it', `${call('1')}\0`, error(null, PARSE)],
  ['a batch', `[${call('1')},${call('2')}]`, error(null, INVALID, /one message/)],
  ['an empty batch', '[]', error(null, INVALID)],
  ['a text', '"ping"', error(null, INVALID)],
  ['null', 'null', error(null, INVALID)],
  ['an empty object', '{}', error(null, INVALID)],
  ['no version', '{"id":1,"method":"ping"}', error(1, INVALID)],
  ['another version', '{"jsonrpc":"1.0","id":"a","method":"ping"}', error('a', INVALID)],
  ['a key too many', call('1', '"method":"ping","more":1'), error(1, INVALID)],
  ['a method that is no text', call('1', '"method":5'), error(1, INVALID)],
  ['no method', '{"jsonrpc":"2.0","id":1}', error(1, INVALID)],
  ['a list of parameters', call('1', '"method":"ping","params":[1]'), error(1, INVALID)],
  ['an id that is null', call('null'), error(null, INVALID, /id/)],
  ['an id that is an object', call('{}'), error(null, INVALID, /id/)],
  ['an id that is a list', call('[1]'), error(null, INVALID, /id/)],
  ['an id that is true', call('true'), error(null, INVALID, /id/)],
  ['an id with a fraction', call('1.5'), error(null, INVALID, /id/)],
  ['an id that is no double', call('1e400'), error(null, INVALID, /id/)],
  ['an id that a double rounds', call('9007199254740993'), error(null, INVALID, /id/)],
  ['an id of 400 digits', call('1'.repeat(400)), error(null, INVALID, /id/)],
  ['a negative id', call('-5'), done(-5)],
  ['an empty text as id', call('""'), done('')],
  ['a lone surrogate as id', call('"\\ud800"'), done('\ud800')],
  ['control characters as id', call('"\\u0000\\u202e"'), done('\0\u202e')],
  ['a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"none","method":"ping"}', done(2)],
  ['a key __proto__', call('1', '"method":"ping","params":{"__proto__":{"x":1}}'), done(1)],
  ['an unknown method', call('1', '"method":"none"'), error(1, METHOD)],
  ['an unknown tool', call('1', '"method":"tools/call","params":{"name":"none"}'), error(1, PARAMS)],
  ['no parameters of a tool', call('1', '"method":"tools/call"'), error(1, PARAMS)],
  ['a lone surrogate in a name', call('1', '"method":"tools/call","params":{"name":"\\udfff"}'), error(1, PARAMS)],
  ['invalid UTF-8', Buffer.from(call('"\xff"'), 'latin1'), error(null, PARSE, /UTF-8/)],
  ['invalid UTF-8, and an id', Buffer.from(call('3', '"method":"\xc0\x80"'), 'latin1'), error(3, PARSE, /UTF-8/)],
  [
    'a long id, and invalid UTF-8',
    Buffer.from(call(`"${'x'.repeat(600)}"`, '"x":"\xff"'), 'latin1'),
    error(null, PARSE),
  ],
  ['a surrogate as UTF-8', Buffer.from(call('3', '"method":"\xed\xa0\x80"'), 'latin1'), error(3, PARSE, /UTF-8/)],
  ['a byte order mark', `\ufeff${call('1')}`, done(1)],
  ['a carriage return', `${call('1')}\r`, done(1)],
  ['blanks', ` \t${call('1')} `, done(1)],
  ['100 000 levels of lists', '['.repeat(100_000), error(null, INVALID, /levels/)],
  ['5 000 levels of arguments', nested(5000, 'logs'), error(7, INVALID, /levels/)],
  ['5 000 levels, and the id before them', nested(5000, 'logs', '"id":8,'), error(7, INVALID, /levels/)],
  ['levels within a text', call('1', `"method":"${'['.repeat(5000)}"`), error(1, METHOD)],
  ['a quote within a text', call('1', `"method":"\\"${'['.repeat(5000)}"`), error(1, METHOD)],
  ['a name of a megabyte', call('1', `"method":"tools/call","params":{"name":"${'x'.repeat(MIB)}"}`), error(1, PARAMS)],
  [
    'a version of a megabyte',
    call('1', `"method":"initialize","params":{"protocolVersion":"${'x'.repeat(MIB)}"}`),
    error(1, INTERNAL),
  ],
  [
    'more than 10 MiB',
    `{"jsonrpc":"2.0","method":"ping","params":{"x":"${'x'.repeat(10 * MIB)}"},"id":4}`,
    error(4, INVALID, /10(\.0)? MiB/),
  ],
  ['a text of more than 10 MiB', `"${'x'.repeat(10 * MIB)}"`, error(null, INVALID, /MiB/)],
  ['no newline in 30 MiB', `${'x'.repeat(30 * MIB)}`, error(null, INVALID, /MiB/)],
  ['a key of more than 10 MiB', `{"${'x'.repeat(10 * MIB)}":1,"id":5}`, error(5, INVALID, /MiB/)],
]

const SILENT: readonly (readonly [what: string, line: string])[] = [
  ['an empty line', ''],
  ['blanks', ' \t\r'],
  ['a notification', '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
  ['an unknown notification', '{"jsonrpc":"2.0","method":"none"}'],
  ['a cancellation of nothing', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}'],
  ['an answer', '{"jsonrpc":"2.0","id":1,"result":{}}'],
  ['an error', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
]

test('each line has one answer, or is one that has none; the server answers the next one', async () => {
  const wire = new Wire()
  for (const [what, line, answer] of LINES) expect([what, await wire.answersTo(line, 1)]).toEqual([what, [answer]])
  for (const [what, line] of SILENT) expect([what, await wire.answersTo(line, 0)]).toEqual([what, []])
  const long = wire.answers.filter((answer) => Buffer.byteLength(JSON.stringify(answer)) > 5000)
  expect([wire.junk, long]).toEqual([[], []])
})

test('a line without an end is answered, and takes no memory', async () => {
  const wire = new Wire()
  await wire.answersTo('', 0)
  const peakKb = () => Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${wire.child.pid}/status`, 'utf8'))![1])
  const before = peakKb()
  const piece = Buffer.alloc(MIB, '{"a":[')
  for (let i = 0; i < (isLong ? 500 : 60); i++) await wire.write(piece)
  expect(await wire.answersTo('', 1)).toEqual([error(null, INVALID, /MiB/)])
  expect(peakKb() - before).toBeLessThan(45_000)
})

test.each([
  ['a request without a newline', [call('1'), call('2')].join('\n'), [1, 2]],
  ['a part of one', `${call('1')}\n{"jsonrpc"`, [1, null]],
  [
    'a call that runs a command',
    call('1', '"method":"tools/call","params":{"name":"summary","arguments":{"logs":["-"]}}'),
    [1],
  ],
])('the end of input behind %s: all lines are answered, then the server ends', async (_, data, ids) => {
  const found = await new Wire().end(data)
  expect(found.map(({ id }) => id).sort((a, b) => (a ?? 9) - (b ?? 9))).toEqual(ids)
  // A command that is not done a second later, as on a busy machine, is an error.
  const answers = [done(1), done(2), error(null, PARSE)]
  if (/tools/.test(data)) answers.push(error(1, LATE, /standard input ended/))
  for (const answer of found) expect(answers).toContainEqual(answer)
})

const random = randomOf(Number(process.env['FC_SEED'] ?? 1))
const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!

const IDS = [
  '1',
  '"a"',
  '""',
  'null',
  '1e400',
  '-0',
  '1.0',
  '1e2',
  '9007199254740992',
  '{}',
  '[[]]',
  '"\\u202e"',
  'tru',
]
const METHODS = ['"ping"', '"tools/list"', '"tools/call"', '"initialize"', '"none"', '"resources/read"', '"__proto__"']
const METHODS_OF_OTHERS = [
  '"completion/complete"',
  '"logging/setLevel"',
  '"notifications/x"',
  '"subscriptions/listen"',
  '5',
  '""',
]
const VALUES = [
  '{}',
  '[]',
  'null',
  '1e999',
  '"x"',
  '{"name":"none"}',
  '{"uri":"ggml2perfetto://none"}',
  '{"_meta":5}',
  '[[[[]]]]',
]

/** A line that resembles a message. */
function lineOf(): Buffer {
  const key = () => pick(['"id"', '"method"', '"params"', '"jsonrpc"', '"result"', '"error"', '"x"', 'x'])
  const fields = [
    ...(random() < 0.9 ? ['"jsonrpc":"2.0"'] : []),
    ...(random() < 0.8 ? [`"id":${pick(IDS)}`] : []),
    ...(random() < 0.9 ? [`"method":${pick(random() < 0.8 ? METHODS : METHODS_OF_OTHERS)}`] : []),
    ...(random() < 0.5 ? [`"params":${pick(VALUES)}`] : []),
    ...(random() < 0.2 ? [`${key()}:${pick([...VALUES, ...IDS])}`] : []),
  ]
  const line = Buffer.from(`{${fields.sort(() => random() - 0.5).join(',')}}`)
  if (random() < 0.3) line[Math.floor(random() * line.length)] = Math.floor(random() * 256)
  return Buffer.from(line.map((byte) => (byte === 10 ? 32 : byte)))
}

/** May a line be without an answer? */
function isSilent(line: Buffer): boolean {
  const text = line.toString()
  if (text.trim() === '') return true
  try {
    const message = JSON.parse(text)
    if (typeof message !== 'object' || message === null) return false
    return (!('id' in message) && typeof message.method === 'string') || 'result' in message || 'error' in message
  } catch {
    return false
  }
}

const isAnswer = (message: Message) =>
  message['jsonrpc'] === '2.0' &&
  'id' in message &&
  'result' in message !== 'error' in message &&
  (!('error' in message) || (Number.isInteger(message['error'].code) && typeof message['error'].message === 'string'))

test('random lines, in pieces cut anywhere: each has one answer', async () => {
  const wire = new Wire()
  const lines = Array.from({ length: isLong ? 20_000 : 800 }, lineOf)
  let answers = 0
  for (const line of lines) {
    const found = await wire.answersTo(line, isSilent(line) ? 0 : 1)
    answers += found.length
    const isRight = found.length <= 1 && (found.length === 1 || isSilent(line)) && found.every(isAnswer)
    if (!isRight) throw new Error(`${JSON.stringify(line.toString('latin1'))}: ${JSON.stringify(found)}`)
  }
  expect([wire.junk, answers > lines.length / 2]).toEqual([[], true])
  // The same all at once, in small pieces.
  const other = new Wire()
  const text = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
  for (let start = 0; start < text.length; ) {
    const end = start + 1 + Math.floor(random() ** 3 * 5000)
    await other.write(text.subarray(start, end))
    start = end
  }
  await other.until(() => other.answers.length >= answers)
  expect((await other.answersTo('', 0)).length).toBe(0)
  expect([other.answers.length - 1, other.junk]).toEqual([answers, []])
})

inLong(test)('many lines at once are all answered', async () => {
  const wire = new Wire()
  const count = 100_000
  await wire.write(`${call('1')}\n`.repeat(count))
  await wire.until(() => wire.answers.length === count)
})
