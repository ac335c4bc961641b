import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterAll, expect, test } from '@jest/globals'
import { parquetReadObjects } from 'hyparquet'
import { exportRun, traceIdOf } from '../../lib/datasets.ts'
import { type TableName, Tables } from '../../lib/tables.ts'
import { at, CLI, canMount, run, useFolder, withMount } from '../cli/helpers.ts'
import { inLong } from '../long.ts'

/** The command `export`: runs are added once, whole, and failures are named. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
useFolder()
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-export-'))
afterAll(() => rmSync(folder, { recursive: true }))

const TINY = join(ROOT, 'test/fixtures/ggtrace/tiny.ggtrace')
const MOE = join(ROOT, 'examples/moe.ggtrace.gz')
const filesIn = (dataset: string) =>
  (existsSync(dataset) ? readdirSync(dataset, { recursive: true, encoding: 'utf8' }) : [])
    .filter((name) => statSync(join(dataset, name)).isFile())
    .sort()

async function rowsOf(bytes: Uint8Array) {
  const file = new Uint8Array(bytes).buffer
  return parquetReadObjects({ file, compressors: { GZIP: (page: Uint8Array) => gunzipSync(page) } })
}

test('adds runs once, by several processes; names a log that cannot be read, and does the others', () => {
  const dataset = join(folder, 'several')
  const bad = join(folder, 'bad.ggtrace')
  writeFileSync(bad, 'no log at all')
  const args = ['export', TINY, bad, MOE, '-o', dataset, '--jobs', '2']
  const first = run(args)
  expect(first.stderr).toMatch(/^error: .*bad\.ggtrace: /m)
  expect(first.code).toBe(1)
  expect(first.stdout).toMatch(/^2 runs added to .*, 1 failed: /)
  const files = filesIn(dataset)
  expect(files.filter((name) => name.startsWith('trace/'))).toHaveLength(2)
  expect(files.every((name) => /^\w+\/v=1\/day=[^/]+\/[0-9a-f]{32}\.parquet$/.test(name))).toBe(true)
  expect(run(args).stdout).toMatch(/^0 runs added to .*, 2 there already, 1 failed: /)
  expect(filesIn(dataset)).toEqual(files)
})

test('the same log is the same run, compressed or not; with --quiet nothing is printed', async () => {
  const dataset = join(folder, 'same')
  const plain = join(folder, 'moe.ggtrace')
  writeFileSync(plain, gunzipSync(readFileSync(MOE)))
  const first = await exportRun(MOE, dataset, '1.0')
  expect(first.isNew).toBe(true)
  expect(await exportRun(plain, dataset, '1.0')).toMatchObject({ traceId: first.traceId, isNew: false })
  expect(run(['export', plain, '-o', dataset, '-q'])).toMatchObject({ code: 0, stdout: '' })
})

test('logs without events that tables have become a run, and this is stated', () => {
  const dataset = join(folder, 'bare')
  const logs = ['llama-bench/tests.json', 'blas-log/cublas.log'].map((name) => join(ROOT, 'test/fixtures', name))
  const exported = (args: string[]) => run(['export', ...args, '-o', dataset]).stdout
  expect(exported(logs.slice(0, 1))).toMatch(
    /: run [0-9a-f]{32}, rows: trace 1\nhint: only the run itself has a table; /,
  )
  expect(exported([...logs, TINY])).toMatch(
    /^2 runs added to [^,]*, 1 of them with the table trace only, 1 there already: /,
  )
  expect(filesIn(dataset).filter((name) => name.startsWith('trace/'))).toHaveLength(3)
})

inLong(test)('killed at any moment, all files are whole, and another export completes the dataset', async () => {
  const dataset = join(folder, 'killed')
  const logs = [1, 2, 3].map((number) => {
    const path = join(folder, `copy-${number}.csv`)
    copyFileSync(join(ROOT, 'examples/moe.csv'), path)
    writeFileSync(path, readFileSync(path, 'utf8').replace(/\n(?=[^\n]*\n$)/, '\n'.repeat(number)))
    return path
  })
  const args = [CLI, 'export', ...logs, MOE, '-o', dataset, '--jobs', '1']
  for (const ms of [250, 450, 600, 700, 800, 900, 1100, 1400]) {
    const child = spawn(process.execPath, args, { stdio: 'ignore' })
    const ended = once(child, 'exit')
    await after(ms)
    child.kill('SIGKILL')
    await ended
    for (const name of filesIn(dataset).filter((name) => !name.startsWith('.unfinished')))
      expect((await rowsOf(readFileSync(join(dataset, name)))).length).toBeGreaterThan(0)
  }
  execFileSync(process.execPath, args)
  const files = filesIn(dataset)
  expect(files.filter((name) => name.startsWith('.unfinished'))).toEqual([])
  expect(files.filter((name) => name.startsWith('trace/')).length).toBe(
    new Set(files.map((name) => name.slice(-40))).size,
  )
})

test('exported again as of another day, a run is there once; what an export that was killed left is replaced', async () => {
  const dataset = join(folder, 'moved')
  const { traceId } = await exportRun(MOE, dataset, '1.0', { day: '2026-01-31' })
  const before = filesIn(dataset)
  // Also where the new log has no rows for a table that had some.
  const stale = `request/v=1/day=2026-01-31/${traceId}.parquet`
  mkdirSync(dirname(join(dataset, stale)), { recursive: true })
  copyFileSync(join(dataset, before[0]!), join(dataset, stale))
  expect(run(['export', MOE, '-o', dataset, '--again', '--day', '2026-02-01', '-q']).code).toBe(0)
  const moved = before.map((name) => name.replace('2026-01-31', '2026-02-01'))
  expect(filesIn(dataset)).toEqual(moved)
  // As of a kill before `trace` is placed: some tables are there by both days, `trace` by none.
  for (const name of moved.slice(0, 3)) {
    mkdirSync(dirname(join(dataset, name.replace('2026-02-01', '2026-01-31'))), { recursive: true })
    copyFileSync(join(dataset, name), join(dataset, name.replace('2026-02-01', '2026-01-31')))
  }
  rmSync(join(dataset, moved.find((name) => name.startsWith('trace/'))!))
  expect(await exportRun(MOE, dataset, '1.0', { day: '2026-02-01' })).toMatchObject({ isNew: true })
  expect(filesIn(dataset)).toEqual(moved)
})

test('exported twice at once, also as of two days, a run is there once, and whole', async () => {
  const alone = await exportRun(MOE, join(folder, 'alone'), '1.0')
  for (const days of [
    ['2026-03-01', '2026-03-01'],
    ['2026-03-02', '2026-03-01'],
  ]) {
    const dataset = join(folder, `twice-${new Set(days).size}`)
    await Promise.all(days.map((day) => exportRun(MOE, dataset, '1.0', { day, again: true })))
    const files = filesIn(dataset)
    expect(files.map((name) => name.replace(/day=[^/]+/, ''))).toEqual(
      filesIn(join(folder, 'alone')).map((name) => name.replace(/day=[^/]+/, '')),
    )
    expect(new Set(files.map((name) => name.split('/')[2]))).toHaveProperty('size', 1)
    for (const name of files)
      expect(await rowsOf(readFileSync(join(dataset, name)))).toHaveLength(alone.rows[name.split('/')[0] as TableName]!)
    expect(existsSync(join(dataset, '.unfinished'))).toBe(false)
  }
})

test('where a folder of a table cannot be made, the run of before stays as it is', async () => {
  const dataset = join(folder, 'blocked')
  await exportRun(MOE, dataset, '1.0', { day: '2026-01-31' })
  const files = filesIn(dataset)
  const blocking = 'operator/v=1/day=2026-02-01' // a file where a folder should be
  writeFileSync(join(dataset, blocking), '')
  const { code, stderr } = run(['export', MOE, '-o', dataset, '--again', '--day', '2026-02-01'])
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: .*day=2026-02-01: cannot write: /)])
  expect(filesIn(dataset)).toEqual([...files, blocking].sort())
})

const mounted = canMount() ? test : test.skip
mounted.each([
  ['full', 'size=12k', 'no space left on the device'],
  ['read-only', 'ro', 'the file system is read-only'],
])('on a file system that is %s nothing is left (needs mount)', (name, options, reason) => {
  for (const format of [[], ['--to', 'arrow']])
    withMount(name, options, () => {
      const { code, stderr } = run(['export', MOE, '-o', at(name), ...format])
      expect([code, stderr]).toEqual([1, expect.stringMatching(`^error: .*: cannot write: ${reason}\n$`)])
      expect(readdirSync(at(name))).toEqual([])
    })
})

inLong(test)(
  'killed while it moves a run to another day, the run counts at most once, and another export completes it',
  async () => {
    const args = (day: string) => [
      CLI,
      'export',
      MOE,
      '-o',
      join(folder, 'killed-moves'),
      '--again',
      '--day',
      day,
      '-q',
    ]
    execFileSync(process.execPath, args('2026-01-01'))
    const files = filesIn(join(folder, 'killed-moves')).length
    for (let day = 2; day <= 5; day++) {
      const child = spawn(process.execPath, args(`2026-01-0${day}`), { stdio: 'ignore' })
      const ended = once(child, 'exit')
      // At the first file of the new day, not after a time.
      const watched = join(folder, 'killed-moves', 'call/v=1')
      while (child.exitCode === null && !readdirSync(watched).includes(`day=2026-01-0${day}`)) await after(1)
      child.kill('SIGKILL')
      await ended
      const left = filesIn(join(folder, 'killed-moves'))
      expect(left.filter((name) => name.startsWith('trace/')).length).toBeLessThanOrEqual(1)
      execFileSync(process.execPath, args(`2026-01-0${day}`))
      const completed = filesIn(join(folder, 'killed-moves'))
      expect(completed).toHaveLength(files)
      expect(completed.every((name) => name.includes(`day=2026-01-0${day}/`))).toBe(true)
    }
  },
)

inLong(test)(
  '`ggml2perfetto/tables` makes the same tables without Node: the program of docs/reference/dataset.md',
  async () => {
    const dataset = join(folder, 'expected')
    const { traceId } = await exportRun(MOE, dataset, '1.0')
    const made = join(folder, 'made')
    const program = join(ROOT, 'examples', `tables-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
    const [block] = /(?<=```js\n)[\s\S]*?(?=```)/.exec(readFileSync(join(ROOT, 'docs/reference/dataset.md'), 'utf8'))!
    writeFileSync(
      program,
      `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
     import { createRequire } from 'node:module'
     globalThis.fetch = async () => new Response(readFileSync(${JSON.stringify(MOE)}))
     ${block}
     mkdirSync(${JSON.stringify(made)})
     for (const [table, bytes] of Object.entries(files)) writeFileSync(${JSON.stringify(made)} + '/' + table, Buffer.concat(bytes))
     const cjs = createRequire(import.meta.url)('ggml2perfetto/tables')
     console.log(await cjs.traceIdOfInputs([log, log]))
     await cjs.traceIdOfInputs({ name: 'x', source: log.source.stream() }).catch(({ message }) => console.log(message))`,
    )
    const printed = execFileSync(process.execPath, [program], { encoding: 'utf8' }).trimEnd().split('\n')
    rmSync(program)
    expect(printed.slice(-3)).toEqual([
      await traceIdOf([MOE, MOE]),
      'x: expected bytes, a Blob or a File, which are read again for the tables, found a stream',
      'hint: read it into a Blob, or give a traceId',
    ])
    const lines: string[] = []
    for (const name of filesIn(dataset)) {
      const [table] = name.split('/') as [string]
      const expected = await rowsOf(readFileSync(join(dataset, name)))
      const own = table === 'trace' ? { log: 'run.ggtrace' } : {}
      expect(await rowsOf(readFileSync(join(made, table)))).toEqual(expected.map((row) => ({ ...row, ...own })))
      lines.push(`${name} ${expected.length} ${statSync(join(made, table)).size}`)
    }
    expect(printed.slice(0, -3).sort()).toEqual(lines.sort())
    expect(lines.every((line) => line.includes(traceId))).toBe(true)
  },
)

test('any names survive', async () => {
  const names = [
    `'quote" \\ ; drop table call; --`,
    'line\nfeed\ttab\0zero',
    'ümläut 漢字 😀',
    '',
    '\u2028\u202e',
    '𐀀'.repeat(100),
  ]
  const compression = { codec: 'none', compress: (bytes: Uint8Array) => bytes } as const
  const tables = new Tables({ traceId: 'f'.repeat(32), compression, createdBy: 'test version 1' })
  for (const [i, name] of names.entries())
    tables.add('counter', { call: null, name, unit: name, ts_ns: -i, value: i / 3 })
  const pieces: Uint8Array[] = []
  for await (const { bytes } of tables.finish()) pieces.push(bytes)
  const rows = await rowsOf(Buffer.concat(pieces))
  expect(new Set(rows.map(({ name }) => name))).toEqual(new Set(names))
  for (const { name, ts_ns, value } of rows)
    expect([ts_ns, value]).toEqual([BigInt(-names.indexOf(name)), names.indexOf(name) / 3])
})
