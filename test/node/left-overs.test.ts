import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from '@jest/globals'
import { exportRun, openDataset } from '../../lib/datasets.ts'
import { unfinished } from '../../lib/node/export.ts'
import { inLong } from '../long.ts'

/** Folders of processes that were killed, those of others, and datasets that change while they are read. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLI = join(ROOT, 'dist/ggml2perfetto.js')
const MOE = join(ROOT, 'examples/moe.ggtrace.gz')
const TINY = join(ROOT, 'test/fixtures/ggtrace/tiny.ggtrace')
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

const dataset = join(folder, 'dataset')
const temporary = join(folder, 'tmp')
mkdirSync(temporary)
const TRACE_ID = '0'.repeat(32)
const env = { ...process.env, TMPDIR: temporary }
const exportTo = (...args: string[]) =>
  execFileSync(process.execPath, [CLI, 'export', TINY, '-o', dataset, '-q', ...args])

describe('a folder of files that are being written', () => {
  const own = unfinished(dataset, TRACE_ID)
  const foreign = join(dirname(own), `${TRACE_ID}-1-other`)
  const made = (path: string) => {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'trace'), '')
    return path
  }
  const age = (path: string, days: number) => {
    const time = Date.now() / 1000 - days * 86400
    for (const at of [join(path, 'trace'), path]) utimesSync(at, time, time)
  }

  test('remains while its process runs', () => {
    made(own)
    exportTo()
    expect(existsSync(own)).toBe(true)
  })

  const isolated = ['--pid', '--fork', '--mount-proc']
  const canIsolate = spawnSync('unshare', [...isolated, 'true']).status === 0
  ;(canIsolate ? test : test.skip)('remains beside an export in another PID namespace (needs root and unshare)', () => {
    made(own)
    const args = [process.execPath, CLI, 'export', TINY, '-o', dataset, '-q', '--again']
    expect(spawnSync('unshare', [...isolated, ...args]).status).toBe(0)
    expect(existsSync(own)).toBe(true)
    rmSync(own, { recursive: true })
  })

  inLong(test)('of a process that cannot be seen is removed a day after it was last written to', () => {
    age(made(foreign), 0.9)
    exportTo('--again')
    expect(existsSync(foreign)).toBe(true)
    age(foreign, 1.1)
    exportTo('--again')
    expect(existsSync(foreign)).toBe(false)
  })
})

describe('a query that is killed', () => {
  const inTemporary = () => readdirSync(temporary).filter((name) => name.startsWith('ggml2perfetto-'))
  const children: ChildProcess[] = []
  const ask = (sql: string) => {
    const child = spawn(process.execPath, [CLI, 'ask', dataset, sql], { env, stdio: 'ignore' })
    children.push(child)
    return child
  }
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  /** Until its folder is there. */
  const begun = async (child: ReturnType<typeof ask>) => {
    while (inTemporary().length === 0 && child.exitCode === null) await new Promise((done) => setTimeout(done, 20))
  }
  const LONG = 'select count(*) from range(100000000000) a, range(1000) b where a.range * b.range % 7 = 3'

  inLong(test)('leaves a folder that only its user can read, and the next one removes it', async () => {
    exportTo()
    const child = ask(LONG)
    await begun(child)
    const [name] = inTemporary()
    expect(statSync(join(temporary, name!)).mode & 0o777).toBe(0o700)
    const other = spawnSync(process.execPath, [CLI, 'ask', dataset, 'select 1'], { env })
    expect([other.status, inTemporary()]).toEqual([0, [name]])
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(inTemporary()).toEqual([name])
    spawnSync(process.execPath, [CLI, 'ask', dataset, 'select 1'], { env })
    expect(inTemporary()).toEqual([])
  })

  test('ends and leaves nothing if it is interrupted', async () => {
    const child = ask(LONG)
    await begun(child)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([143, null])
    expect(inTemporary()).toEqual([])
  })

  test('by the program that asked fails', async () => {
    const opened = await openDataset(dataset)
    const asked = expect(opened.query(LONG)).rejects.toMatchObject({ name: 'SqlError' })
    const again = setInterval(() => opened.interrupt(), 50)
    await asked
    clearInterval(again)
    opened.close()
  })

  test('a recording removes what one that was killed left', () => {
    const dead = spawnSync('true').pid
    const mark = unfinished('', TRACE_ID).replace(/^.*-(\w+)$/, '$1')
    const left = join(temporary, `ggml2perfetto-${dead}-${mark}-${'0'.repeat(16)}`)
    mkdirSync(left)
    spawnSync(process.execPath, [CLI, 'record', '-o', join(folder, 'none.ggtrace'), '--', 'true'], { env })
    expect(inTemporary()).toEqual([])
  })
})

describe('a dataset', () => {
  inLong(test)('whose runs are exported again while it is read: each answer is of one export', async () => {
    const changing = join(folder, 'changing')
    await exportRun(MOE, changing, '1.0')
    const exporting = (async () => {
      for (let i = 0; i < 12; i++) await exportRun(MOE, changing, '1.0', { again: true, day: `2026-01-${10 + i}` })
      return 'done'
    })()
    let isDone = false
    void exporting.then(() => (isDone = true))
    const sql =
      'select count(distinct o.day), count(distinct t.day), count(*) from operator o join trace t using (trace_id)'
    let asked = 0
    while (!isDone) {
      const opened = await openDataset(changing)
      expect((await opened.query(sql)).rows).toEqual([[1, 1, 2898]])
      opened.close()
      asked++
    }
    expect(await exporting).toBe('done')
    expect(asked).toBeGreaterThan(0)
  })

  test.each(['cut', 'empty', 'overwritten'])(
    'with a file that is %s names it, and answers questions about others',
    async (how) => {
      const root = join(folder, how)
      await exportRun(MOE, root, '1.0')
      const day = readdirSync(join(root, 'operator/v=1'))[0]!
      const file = readdirSync(join(root, 'operator/v=1', day))[0]!
      const path = join(root, 'operator/v=1', day, file)
      const bytes = readFileSync(path)
      if (how === 'cut') truncateSync(path, bytes.length >> 1)
      else if (how === 'empty') truncateSync(path, 0)
      else writeFileSync(path, bytes.fill(0x55, 100, 1000))
      const opened = await openDataset(root)
      const all = 'select sum(columns(* exclude (day)) is not null) from operator'
      await expect(opened.query(all.replace('sum(', 'count('))).rejects.toMatchObject({
        name: 'UsageError',
        message: expect.stringMatching(new RegExp(`^${path}: is damaged: .*\nhint: export its log again`)),
      })
      expect((await opened.query('select count(*) from call')).rows).toEqual([[9]])
      const tables = (await opened.query('show tables')).rows.flat()
      expect(tables).toContain('trace')
      opened.close()
    },
  )
})
