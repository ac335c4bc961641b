import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { at, folder, run, runProcess, useFolder } from '../cli/helpers.ts'
import { HOSTILE_LOGS, LEGIBLE, NAME, RAW, textsIn } from '../cli/hostile.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { ROOT } from '../root.ts'
import { Agent, SERVER, useAgents } from './helpers.ts'

/** What a client must not get: files elsewhere, programs, endless work, more than an answer. */

useFolder()
useAgents()

let agent: Agent
let elsewhere: string
const LOG = gunzipSync(readFileSync(join(ROOT, 'test/recorded/preempted.ggtrace.gz')))

beforeAll(async () => {
  elsewhere = mkdtempSync(join(tmpdir(), 'ggml2perfetto-elsewhere-'))
  writeFileSync(join(elsewhere, 'secret.ggtrace'), LOG)
  mkdirSync(at('logs/deep'), { recursive: true })
  for (const name of ['logs/run.ggtrace', 'logs/--json', 'logs/a:b.ggtrace']) writeFileSync(at(name), LOG)
  agent = await Agent.start('--folder', 'logs', '--timeout', '60')
})

afterAll(() => rmSync(elsewhere, { recursive: true, force: true }))

/** Commands that a server runs now. */
const childrenOf = ({ pid }: Agent) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()

/** Arguments of a call that no command is run for. */
const PATHS: readonly (readonly [what: string, path: () => string, message: RegExp])[] = [
  [
    'a file elsewhere',
    () => join(elsewhere, 'secret.ggtrace'),
    /: expected a path within .*logs; it is in none of them\nhint: .*--folder/,
  ],
  ['a file that does not exist elsewhere', () => '/nothing/x.ggtrace', /; it is in none of them/],
  ['steps up', () => '../logs/../../etc/passwd', /; it is in none of them/],
  [
    'a file of a folder whose name begins as that of the folder',
    () => '../logs-2/run.ggtrace',
    /; it is in none of them/,
  ],
  ['a symbolic link to a file elsewhere', () => 'link.ggtrace', /; a symbolic link leads outside of them/],
  [
    'a file through a symbolic link to a folder elsewhere',
    () => 'deep/out/secret.ggtrace',
    /; a symbolic link leads outside of them/,
  ],
  ['a symbolic link to itself', () => 'circle', /: cannot read: ELOOP$/],
  ['a pipe', () => 'pipe', /: expected a file, found a device, pipe or socket$/],
  ['a folder', () => 'deep', /: expected a file, found a folder$/],
  ['standard input', () => '-', /^error: -: cannot read: no such file$/],
  ['a URL', () => 's3://bucket/dataset', /cannot read: no such file$/],
  ['a character NUL', () => 'run.ggtrace\0.txt', /expected a path, found a character NUL$/],
]

beforeAll(() => {
  symlinkSync(join(elsewhere, 'secret.ggtrace'), at('logs/link.ggtrace'))
  symlinkSync(elsewhere, at('logs/deep/out'))
  symlinkSync('circle', at('logs/circle'))
  execFileSync('mkfifo', [at('logs/pipe')])
})

test.each(PATHS)('%s is refused', async (_, path, message) => {
  for (const tool of ['summary', 'dag', 'open']) expect(await agent.error(tool, { logs: [path()] })).toMatch(message)
  expect(await agent.error('compare', { before: [path()], after: ['run.ggtrace'] })).toMatch(
    path() === 'deep'
      ? /a symbolic link leads outside of them/
      : message.source.includes('a file, found')
        ? /expected a file or folder/
        : message,
  )
})

const odd = async (name: string) => {
  const { evidence } = await agent.ask('summary', { logs: [name] })
  expect(evidence.calls.count).toBe(3)
}
test('a file whose name looks like an option', () => odd('--json'))
inLong(test)('a file whose name looks like a URL', () => odd('a:b.ggtrace'))

test('a folder with a symbolic link that leads out of it is refused', async () => {
  expect(await agent.error('query', { dataset: 'deep', sql: 'select 1' })).toMatch(
    /^error: deep\/out: .*a symbolic link leads outside/,
  )
})

describe('sizes', () => {
  test.each([
    ['too many logs', 'summary', { logs: Array.from({ length: 65 }, () => 'run.ggtrace') }],
    ['no logs', 'summary', { logs: [] }],
    ['a long path', 'summary', { logs: ['x'.repeat(5000)] }],
    ['long SQL', 'query', { logs: ['run.ggtrace'], sql: `select ${' '.repeat(20_000)}1` }],
    ['too many rows', 'query', { logs: ['run.ggtrace'], sql: 'select 1', limit: 1_000_000 }],
    ['a negative number', 'stats', { logs: ['run.ggtrace'], from: -1 }],
    ['an unknown argument', 'summary', { logs: ['run.ggtrace'], command: 'sh' }],
    ['another type', 'stats', { logs: 'run.ggtrace' }],
  ])('%s', async (_, tool, args) => {
    const { isError, content } = await agent.result(tool, args)
    expect([isError, (content[0] as { readonly text: string }).text]).toEqual([
      true,
      expect.stringMatching(/^Input validation error/),
    ])
  })

  inLong(test)('long values in a row do not make an answer longer', async () => {
    const name = 'n'.repeat(6000)
    const rows = await agent.ask('query', { logs: ['run.ggtrace'], sql: `select '${name}' as a, 1 as b` })
    expect(rows.evidence.rows[0]).toEqual({ a: expect.stringMatching(/^n+… \(\d+ more characters\)$/), b: 1 })
  })
})

describe('SQL of a trace', () => {
  const ATTEMPTS = [
    ['files', "attach '/etc/passwd' as secret", /^error: unable to open database: \/etc\/passwd\n/],
    ['an extension', "select load_extension('/tmp/x.so')", /^error: no such function: load_extension\n/],
    ['options of the command', '--package=/tmp/ggml2perfetto-hostile', /^error: No valid SQL to run/],
    ['a new file', "attach '/tmp/ggml2perfetto-hostile' as new", /^error: unable to open database/],
  ] as const
  const attempt = async (_: string, sql: string, message: RegExp) => {
    expect(await agent.error('query', { logs: ['run.ggtrace'], sql })).toMatch(message)
    expect(existsSync('/tmp/ggml2perfetto-hostile')).toBe(false)
  }
  test.each(ATTEMPTS.slice(0, 1))('%s', attempt)
  inLong(test).each(ATTEMPTS.slice(1))('%s', attempt)

  const ENDLESS = 'with recursive t(x) as (select 1 union all select x + 1 from t) select count(*) from t'

  inLong(test)('endless SQL ends with its limit of time', async () => {
    const hasty = await Agent.start('--folder', 'logs', '--timeout', '2')
    expect(await hasty.error('query', { logs: ['run.ggtrace'], sql: ENDLESS })).toMatch(
      /^error: the call was ended after 2 s, the limit\nhint: .*--timeout/,
    )
  })

  test('endless SQL ends with the call that is cancelled; no command remains', async () => {
    const controller = new AbortController()
    const progress: number[] = []
    const call = agent.client.callTool(
      { name: 'query', arguments: { logs: ['run.ggtrace'], sql: ENDLESS } },
      {
        signal: controller.signal,
        onprogress: ({ progress: seconds }) => {
          progress.push(seconds)
          controller.abort()
        },
      },
    )
    await expect(call).rejects.toThrow()
    expect(progress[0]).toBeGreaterThan(0) // a timer of 1 s may fire a fraction before
    while (childrenOf(agent) !== '') await sleep(20)
  })

  test('endless SQL ends with the server that is killed', async () => {
    const killed = await Agent.start('--folder', 'logs')
    let pid = ''
    const onprogress = () => {
      pid = childrenOf(killed)
      process.kill(killed.pid, 'SIGKILL')
    }
    const call = { name: 'query', arguments: { logs: ['run.ggtrace'], sql: ENDLESS } }
    await expect(killed.client.callTool(call, { onprogress })).rejects.toThrow()
    while (existsSync(`/proc/${pid}`)) await sleep(50)
  })

  inLong(test)('a result of hundreds of megabytes is refused', async () => {
    const huge = `with recursive t(x) as (select 1 union all select x + 1 from t limit 300000) select x, printf('%0500d', x) from t`
    expect(await agent.error('query', { logs: ['run.ggtrace'], sql: huge })).toMatch(
      /^error: (?:expected at most 64 MiB of output, found more|the call was ended|the command was ended|.*memory)/,
    )
  })
})

inLong(describe)('SQL of a dataset', () => {
  test.each([
    ['a file elsewhere', "select * from read_csv('/etc/passwd')", /the table function read_csv is not allowed/],
    ['a write', "copy (select 1) to '/tmp/ggml2perfetto-hostile.csv'", /expected a SELECT/],
    ['a database', "attach '/tmp/ggml2perfetto-hostile.db'", /expected a SELECT/],
    ['a setting', 'set enable_external_access = true', /expected a SELECT/],
    ['several statements', 'select 1; select 2', /expected one statement, found 2/],
  ])('%s is refused', async (_, sql, message) => {
    if (!existsSync(at('logs/dataset'))) run(['export', 'logs/run.ggtrace', '-o', 'logs/dataset'])
    expect(await agent.error('query', { dataset: 'dataset', sql })).toMatch(message)
    expect(existsSync('/tmp/ggml2perfetto-hostile.csv')).toBe(false)
  })
})

inParts(test)(
  'names with characters that are not visible are shown with escapes, and arguments with them are not repeated',
  async () => {
    const names = [...Object.keys(HOSTILE_LOGS), `${NAME}.ggtrace`]
    for (const name of names)
      writeFileSync(at(`logs/${name}`), (HOSTILE_LOGS[name] ?? HOSTILE_LOGS['calls.ggtrace']!)())
    const sql = `select name, '${NAME}' as '${NAME}' from slice where category = 'operator' limit 3`
    const calls = names.flatMap((name) => [
      ...['summary', 'why', 'stats', 'dag', 'what_if'].map((tool) => [tool, { logs: [name] }] as const),
      ['stats', { logs: [name], section: 'run' }] as const,
      ['stats', { logs: [name], by: ['role', 'op'] }] as const,
      ['compare', { before: [name], after: ['calls.ggtrace'] }] as const,
      ['query', { logs: [name], sql }] as const,
      ['summary', { logs: [`no ${NAME}`] }] as const,
      ['stats', { logs: [name], section: NAME }] as const,
      ['query', { logs: [name], sql: NAME }] as const,
    ])
    let legible = 0
    for (const [tool, args] of someOf(calls, 4)) {
      const { content, structuredContent } = await agent.result(tool, args)
      const { text } = content[0] as { readonly text: string }
      const shown = [text, ...textsIn(structuredContent), ...(structuredContent ? textsIn(JSON.parse(text)) : [])]
      expect([tool, args, shown.filter((text) => RAW.test(text))]).toEqual([tool, args, []])
      if (text.includes(LEGIBLE)) legible++
    }
    expect(legible).toBeGreaterThan(5)
    for (const refused of [
      () => agent.result(NAME, {}),
      () => agent.client.readResource({ uri: `ggml2perfetto://${NAME}` }),
    ]) {
      const message = await refused().then(
        () => '',
        (error: Error) => error.message,
      )
      expect([message === '', RAW.test(message)]).toEqual([false, false])
    }
  },
)

test('a call with such a path is followed by its client', async () => {
  const logs = [`${NAME}.ggtrace`]
  const { next } = await agent.ask('summary', { logs })
  expect(next[0]!.same).toEqual(['logs'])
  expect((await agent.follow(next[0]!, { logs })).verdict).not.toBe('')
})

test('a file that changes while it is read is refused', async () => {
  writeFileSync(at('logs/live.ggtrace'), LOG)
  let isDone = false
  const call = agent.error('summary', { logs: ['live.ggtrace'] }).finally(() => {
    isDone = true
  })
  while (!isDone) {
    appendFileSync(at('logs/live.ggtrace'), 'x')
    await sleep(20)
  }
  expect(await call).toMatch(
    /^error: live\.ggtrace: changed while it was read: expected \d+ bytes, found \d+ bytes\nhint: call again when the recording has ended$/,
  )
})

test('a log that is damaged: the error of the command, with the file and the place', async () => {
  writeFileSync(at('logs/damaged.csv'), 'ts,what\n1,2\n')
  const { stderr } = run(['stats', 'damaged.csv'], { cwd: at('logs') })
  expect(await agent.error('summary', { logs: ['damaged.csv'] })).toBe(stderr.trim())
  expect(stderr).toContain('damaged.csv: ')
})

describe('programs', () => {
  test('none is run without --allow-record', async () => {
    await expect(agent.ask('record', { program: '/bin/true' })).rejects.toThrow(/record/)
  })

  test('only those of the list are run, by no shell, and only new logs of the folder are written', async () => {
    const recording = await Agent.start('--folder', 'logs', '--allow-record', '--program', '/bin/echo')
    const refused = /^error: .*: expected one of the programs that may be recorded, \/bin\/echo$/
    for (const program of ['/bin/sh', '/bin/echo; id', '../bin/echo', '--help'])
      expect(await recording.error('record', { program })).toMatch(refused)
    const invalid = /^Input validation error/
    for (const output of ['../x.ggtrace', '/tmp/x.ggtrace', '-o.ggtrace', 'x.sh', '.ggtrace'])
      expect(await recording.error('record', { program: 'echo', output })).toMatch(invalid)
    expect(await recording.error('record', { program: 'echo', output: 'run.ggtrace' })).toMatch(
      /^error: run\.ggtrace: exists/,
    )
    expect(await recording.error('record', { program: 'echo', output: 'link.ggtrace' })).toMatch(
      /^error: link\.ggtrace: exists/,
    )
    const marker = at('logs/marker')
    const args = ['$(touch marker)', '; touch marker', '--', '-o', 'other.ggtrace']
    expect(await recording.error('record', { program: 'echo', arguments: args, output: 'echo.ggtrace' })).toMatch(
      /wrote no log: /,
    )
    expect([marker, at('logs/other.ggtrace')].filter((path) => existsSync(path))).toEqual([])
  })
})

inLong(test)('a recorded program ends with its limit of time', async () => {
  const recording = await Agent.start('--folder', 'logs', '--allow-record', '--program', '/bin/sleep')
  const args = { program: 'sleep', arguments: ['1000'], seconds: 1, output: 'sleep.ggtrace' }
  expect(await recording.error('record', args)).toMatch(/^error: .*sleep wrote no log: /)
  expect(childrenOf(recording)).toBe('')
})

inLong(test)('long arguments are not repeated in the calls that an answer names', async () => {
  const logs = ['run.ggtrace']
  const sql = `select 1 as a ${'-- '.repeat(150)}\nunion all select 2`
  const { left } = await agent.ask('query', { logs, sql, limit: 1 })
  expect([left!.count, left!.next]).toMatchObject([1, { arguments: { logs, from: 1, limit: 1 }, same: ['sql'] }])
  const rest = await agent.follow(left!.next, { logs, sql, limit: 1 })
  expect(rest.evidence.rows).toEqual([{ a: 2 }])
})

const started = (...args: string[]) => {
  try {
    const how = { cwd: folder, encoding: 'utf8', input: '', stdio: 'pipe' } as const
    return execFileSync(process.execPath, [SERVER, ...args], how)
  } catch (error) {
    return (error as { readonly stderr: string }).stderr
  }
}

test('a folder that does not exist is an error at the start', () =>
  expect(started('--folder', 'nowhere')).toBe('error: --folder nowhere: expected a folder, found nothing\n'))

inLong(test)('other options of the command', () => {
  expect(started('--allow-record')).toMatch(
    /^error: --allow-record: expected the programs that may be recorded\nhint: /,
  )
  expect(started('--program', '/bin/true')).toMatch(/^error: --program: expected --allow-record, too/)
  expect(started('--timeout', '0')).toMatch(/^error: --timeout "0": expected a whole number of seconds from 1/)
  expect(started('--flag')).toMatch(/^error: Unknown option '--flag'[\s\S]*hint: ggml2perfetto-mcp --help/)
  expect(started('--help')).toMatch(/^ggml2perfetto-mcp \[options\]\n/)
  expect(started('--version')).toBe(runProcess(['--version']).stdout)
})
