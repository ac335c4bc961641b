import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { convert, summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { NANO, recordHosts, useRecorder } from './recording.ts'

/** Secrets of a command line: neither does the recorder write them, nor does the reader pass those of older logs on. */

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk'

/** Words of a command, those of which something is taken out, and how many secrets that is. */
const SECRETS: readonly (readonly [words: readonly string[], redacted: string, count: number])[] = [
  [['llama-server', '--api-key', 'hunter2', '-c', '512'], 'llama-server --api-key [redacted] -c 512', 1],
  [['llama-server', '--api-key=hunter2', '-c', '512'], 'llama-server --api-key=[redacted] -c 512', 1],
  [['llama-cli', '--hf-token', 'abc', '-hft', 'def'], 'llama-cli --hf-token [redacted] -hft [redacted]', 2],
  [['x', '--password', 'a"b;c', '--token', '1'], 'x --password [redacted] --token [redacted]', 2],
  [['x', '--password=a"b;c&d'], 'x --password=[redacted]', 1],
  [
    ['env', 'HF_TOKEN=abc', 'OPENAI_API_KEY=x/y=', 'SSH_KEY=1', 'x'],
    'env HF_TOKEN=[redacted] OPENAI_API_KEY=[redacted] SSH_KEY=[redacted] x',
    3,
  ],
  [['x', 'sk-proj-abcdefgh12345678'], 'x [redacted]', 1],
  [['x', 'key=hf_AbCdEfGhIjKlMnOpQrSt', '-n'], 'x key=[redacted] -n', 1],
  [['x', 'ghp_0123456789abcdef', 'github_pat_11ABCDEFG0_abcdef'], 'x [redacted] [redacted]', 2],
  [['x', 'xoxb-1234567890-abc', 'AKIAIOSFODNN7EXAMPLE.'], 'x [redacted] [redacted].', 2],
  [['x', JWT, '-c'], 'x [redacted] -c', 1],
  [['x', '-H', `Authorization: Bearer ${JWT}`], 'x -H Authorization: Bearer [redacted]', 1],
  [['x', '-H', 'Authorization: Basic dXNlcjpwYXNz'], 'x -H Authorization: Basic [redacted]', 1],
  [['x', '-H', 'X-Api-Key: abc', 'y'], 'x -H X-Api-Key: [redacted] y', 1],
  [['x', 'Bearer', 'abcdefgh1234'], 'x Bearer [redacted]', 1],
  [['x', 'https://me:pass@word@host/a?b=c'], 'x https://me:[redacted]@host/a?b=c', 1],
  [['x', 'postgres://me:p%40ss@host/db'], 'x postgres://me:[redacted]@host/db', 1],
  [['x', 'https://abcdef@github.com/a/b'], 'x https://[redacted]@github.com/a/b', 1],
  [['x', 'https://host/a?key=abc&token=def&n=1'], 'x https://host/a?key=[redacted]&token=[redacted]&n=1', 2],
  [['sh', '-c', 'llama-server --api-key abc -c 5'], 'sh -c llama-server --api-key [redacted] -c 5', 1],
  [['x', '{"api_key": "abc", "n": 1}'], 'x {"api_key": "[redacted]", "n": 1}', 1],
  [['x', '--api-key', '[redacted]', '--hf-token=[redacted]'], 'x --api-key [redacted] --hf-token=[redacted]', 0],
  [['x', '--api-key'], 'x --api-key', 0],
  ...['--pass', '--db-pass', '--pwd', '--key', '-k', '--auth', '--proxy_auth', '--bearer', '--cookie'].flatMap(
    (option) =>
      [
        [['x', option, 'hunter2', '-n'], `x ${option} [redacted] -n`, 1],
        [['x', `${option}=hunter2`, '-n'], `x ${option}=[redacted] -n`, 1],
      ] as const,
  ),
  [['env', 'pass=hunter2', 'DB_PWD=a', 'x'], 'env pass=[redacted] DB_PWD=[redacted] x', 2],
  [['x', 'user=me;pass=hunter2;n=1'], 'x user=me;pass=[redacted];n=1', 1],
  [['x', 'https://host/a?n=1&sig=a%2B&x=y'], 'x https://host/a?n=1&sig=[redacted]&x=y', 1],
  [['x', 'https://host/a?X-Amz-Signature=0f&n=1'], 'x https://host/a?X-Amz-Signature=[redacted]&n=1', 1],
  [['x', '-H', 'Cookie: a=b; c=d', '-n'], 'x -H Cookie: [redacted] -n', 1],
  [['curl', '-k', '-v', 'x'], 'curl -k -v x', 0],
  [['x', '--api-key', '--verbose'], 'x --api-key --verbose', 0],
]

/** What is no secret. */
const HARMLESS: readonly (readonly string[])[] = [
  ['llama-cli', '-m', '/models/sk-learn-large-v1/hf_TinyLlama12345/model.gguf', '-p', 'Why is the sky blue?'],
  ['llama-cli', '-m', 'sk-learn-pipeline-v2.gguf', '-m', 'hf_TinyLlama123456.gguf', 'hf_TinyLlama123456-v2'],
  ['llama-server', '--api-key-file', '/etc/keys', '--ssl-key-file', 'a.pem', '--api-key-file=/etc/keys'],
  ['llama-cli', '--override-kv', 'tokenizer.ggml.add_bos_token=bool:false', '--n-predict', '3', '--tokens', '5'],
  ['x', '--max-token=5', '--eos-token', '2', 'ssh://git@host/a', 'http://host:8080/a@b', 'user@host'],
  ['llama-cli', '-p', 'Say "password" and tell a secret of the bearer of news; disk-drive-in-the-house'],
  ['x', 'task-abcdefghijklmnop', 'risk-abcdefghijklmnop', 'Keyboard=us', 'monkey=1', ''],
  [
    'x',
    '--top-k',
    '40',
    '--key-file',
    'a',
    '--pass-through',
    '--keep',
    '1',
    'compass=2',
    '--author',
    'me',
    'a&sigma=2',
  ],
]

let folder = ''
let program = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-redact-'))
  program = join(folder, 'redact')
  const native = fileURLToPath(new URL('../../native', import.meta.url))
  cc(
    '-fsanitize=address,undefined',
    `-I${native}`,
    '-o',
    program,
    `${native}/test/redact.c`,
    `${native}/common/redact.c`,
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

const written = (words: readonly string[]) => execFileSync(program, words, { encoding: 'utf8' })

async function read(facts: Readonly<Record<string, string>>) {
  const writer = new GgtraceWriter({ originNs: 0n })
  writer.run(facts, { monotonic: 1n, boottime: 1n, realtime: 1n })
  writer.end(1)
  const { command, redacted } = (await summarize({ name: 'log', source: [writer.take()] })).attributes
  return `${redacted ?? 0} ${command}\n`
}

describe('a command line', () => {
  test.each(SECRETS)('%j: %s', async (words, text, count) => {
    expect(written(words)).toBe(`${count} ${text}\n`)
    expect(await read({ command: words.join(' ') })).toBe(`${count} ${text}\n`)
  })

  test.each(HARMLESS.map((words) => [words] as const))('%j stays as it is', async (words) => {
    expect(written(words)).toBe(`0 ${words.join(' ')}\n`.replace(/ \n$/, '\n'))
    expect(await read({ command: words.join(' ') })).toBe(`0 ${words.join(' ')}\n`)
  })

  test('a value with blanks is taken out as a whole', () => {
    expect(written(['x', '--password', 'a b c', '-n', '--password=d e', 'f'])).toBe(
      '2 x --password [redacted] -n --password=[redacted] f\n',
    )
  })

  test('a log that says how many were taken out, and has more', async () => {
    const facts = { command: 'x --api-key [redacted] sk-abcdefgh12345678', redacted: '1' }
    expect(await read(facts)).toBe('2 x --api-key [redacted] [redacted]\n')
  })
})

const llama = hasLlama() ? describe : describe.skip

llama('a recorded program', () => {
  useRecorder()

  test('has its secrets in no log, and in no trace', async () => {
    const { path } = await model(NANO)
    const steps = [
      'load',
      0,
      path,
      'open',
      0,
      1,
      'decode',
      0,
      2,
      'exec',
      'true',
      '--api-key',
      'hunter2',
      '-p',
      'prompt',
    ]
    const { log } = await recordHosts(steps)
    const pieces: Uint8Array[] = []
    for await (const piece of convert(inputOf(log))) pieces.push(piece)
    for (const bytes of [readFileSync(log), Buffer.concat(pieces)]) {
      expect(bytes.includes('exec true --api-key [redacted] -p prompt')).toBe(true)
      expect(bytes.includes('hunter2')).toBe(false)
    }
    expect((await summarize(inputOf(log))).attributes['redacted']).toBe('1')
  })
})
