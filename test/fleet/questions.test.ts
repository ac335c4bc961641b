import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { fleetFigures, type OpenDataset, openDataset, QUESTIONS, type QuestionName } from '../../lib/datasets.ts'
import { loadDuckDb } from '../../lib/node/duckdb.ts'
import { fleetReportHtml } from '../../lib/report.ts'
import { writeDataset, writeMixedDataset } from './datasets.ts'
import { smallFleet } from './fleets.ts'

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-fleet-'))
const at = (name: string) => join(folder, name)
const planted = smallFleet({ seed: 7, runs: 160, hosts: 8, setups: 1, regressions: 1, outliers: 2, slowHosts: 1 })
const flat = smallFleet({ seed: 8, runs: 160, hosts: 8, setups: 1, regressions: 0, outliers: 0, withOperators: false })
let fleet: OpenDataset
let quiet: OpenDataset

beforeAll(async () => {
  await writeDataset(at('planted'), planted.rows)
  await writeDataset(at('flat'), flat.rows)
  // Characters that are patterns of paths, and a quote.
  renameSync(at('flat'), at("fl[a]t*'s"))
  ;[fleet, quiet] = await Promise.all([openDataset(at('planted')), openDataset(at("fl[a]t*'s"))])
})

afterAll(() => {
  for (const dataset of [fleet, quiet]) dataset.close()
  rmSync(folder, { recursive: true })
})

const ask = async (of: OpenDataset, name: QuestionName) => {
  const { columns, rows } = await of.query(QUESTIONS[name].sql)
  return rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])))
}

describe('questions', () => {
  test('regressions: the build that is slower, the role that explains it, runs before and after', async () => {
    const [{ build, phase, role }] = planted.truth.regressions as [(typeof planted.truth.regressions)[0]]
    const found = await ask(fleet, 'regressions')
    expect(found).toEqual([expect.objectContaining({ build, phase, most_by: role, log_after: expect.any(String) })])
    expect(await ask(quiet, 'regressions')).toEqual([])
  })

  test('outliers: the runs that are slow, and why; none of a flat fleet', async () => {
    const found = await ask(fleet, 'outliers')
    expect(new Set(found.map(({ trace_id }) => trace_id))).toEqual(new Set(planted.truth.outliers))
    for (const { finding, preempted_percent } of found) {
      if (finding === 'preempted') expect(preempted_percent).toBeGreaterThan(10)
      else expect(finding).toBe('throttled')
    }
    expect(await ask(quiet, 'outliers')).toEqual([])
  })

  test('by-host: the host that is slow in both phases', async () => {
    const slow = (await ask(fleet, 'by-host')).filter(({ verdict }) => verdict === 'slow')
    expect(slow.map(({ host, phase }) => [host, phase])).toEqual([
      [planted.truth.slowHosts[0], 'decode'],
      [planted.truth.slowHosts[0], 'prefill'],
    ])
  })

  test('by-build: all builds in their order, one of them slower', async () => {
    const rows = await ask(fleet, 'by-build')
    const of = rows.filter(({ phase }) => phase === planted.truth.regressions[0]!.phase)
    expect(of.map(({ build }) => build)).toEqual(planted.truth.builds)
    expect(of.filter(({ verdict }) => verdict !== '').map(({ build }) => build)).toEqual([
      planted.truth.regressions[0]!.build,
    ])
    expect(of.reduce((sum, { runs }) => sum + (runs as number), 0)).toBe(160)
  })

  test('slowest-operators and preemption: their sums are those of the tables', async () => {
    const operators = await ask(fleet, 'slowest-operators')
    expect(operators.map(({ role }) => role)).toContain('ffn_moe_down')
    expect(operators.reduce((sum, { n }) => sum + (n as number), 0)).toBe(planted.rows.operator!.length)
    expect(operators[0]).toMatchObject({ type: 'Q4_0', backend: 'CPU' })
    const [first] = await ask(fleet, 'preemption')
    expect(first).toMatchObject({ most_by: 'cc1plus', times: 5 })
  })

  test('tables without files are empty, with their columns', async () => {
    expect(await fleet.query('select count(*) as n, sum(dur_ns) as ns, min(day) as day from gpu')).toEqual({
      columns: ['n', 'ns', 'day'],
      rows: [[0, null, null]],
    })
  })
})

describe('report', () => {
  test('names what is slower with its runs, and draws every run', async () => {
    const figures = await fleetFigures(fleet, 'farm <1>')
    const page = fleetReportHtml(figures)
    expect(page).toContain('<h1>farm &lt;1&gt;</h1><p class="lead">160 runs · 8 builds · 8 hosts</p>')
    const [{ build, role }] = planted.truth.regressions as [(typeof planted.truth.regressions)[0]]
    expect(page).toContain(`<li><strong>${build}: `)
    expect(page).toContain(`; most by ${role} (`)
    for (const id of planted.truth.outliers) expect(page).toMatch(new RegExp(`<li>logs/.*, run ${id}</span>`))
    expect(page).toContain(`<li>${planted.truth.slowHosts[0]}: decode +`)
    for (const { trace_id, log } of figures.points) expect(page).toContain(`${log}\n${trace_id}</title>`)
    expect(fleetReportHtml(await fleetFigures(quiet, 'flat'))).toContain('No build is slower')
  })
})

describe('SQL of the user', () => {
  test('reads tables; integers are exact, dates texts', async () => {
    const sql = `select count(*), 9007199254740993::bigint, min(day), true, [1, 2], 1.5 from trace`
    expect((await fleet.query(sql)).rows).toEqual([[160, 9007199254740993n, '2026-01-05', true, '[1, 2]', 1.5]])
    expect((await fleet.query('describe operator')).rows[0]![0]).toBe('trace_id')
  })

  test('cannot write, load, or read other files', async () => {
    writeFileSync(at('secret.csv'), 'a\n1\n')
    mkdirSync(at('planted/out'))
    for (const sql of [
      `copy (select 1) to '${at('planted/out/x.csv')}'`,
      `explain analyze copy (select 1) to '${at('planted/out/x.csv')}'`,
      `export database '${at('planted/out')}'`,
      'create table mine (a int)',
      `attach '${at('planted/out/x.db')}'`,
      'install httpfs',
      'load httpfs',
      'set threads = 1',
      'select 1; select 2',
      `select * from read_csv('${at('secret.csv')}')`,
      `select * from '${at('secret.csv')}'`,
      `select * from read_text('${at('planted/../secret.csv')}')`,
      `select * from glob('/etc/*')`,
      'select * from nowhere',
      'selec',
    ]) {
      await expect(fleet.query(sql)).rejects.toMatchObject({ name: 'SqlError' })
    }
    expect((await fleet.query(`select count(*) from glob('${at('planted')}/out/*')`)).rows).toEqual([[0]])
  })
})

describe('datasets', () => {
  test('a run without its row of trace does not count', async () => {
    const { call, trace } = planted.rows
    await writeDataset(at('torn'), { call: call! }, '2026-01-06', 'torn')
    await writeDataset(at('torn'), { trace: trace!.slice(0, 1), call: call!.slice(0, 2) })
    const torn = await openDataset(at('torn'))
    expect(torn.runs).toBe(1)
    expect((await torn.query('select count(*) from call')).rows).toEqual([[2]])
    torn.close()
  })

  test('runs without sums of operators, as older versions wrote them, have the same answers, also among others', async () => {
    const { operator_sum: sums, ...older } = planted.rows
    await writeDataset(at('older'), older)
    await writeMixedDataset(at('mixed'), planted.rows)
    const all = 'select * exclude (day) from operator_sum order by all'
    for (const name of ['older', 'mixed']) {
      const dataset = await openDataset(at(name))
      expect((await dataset.query(all)).rows).toEqual((await fleet.query(all)).rows)
      expect((await dataset.query('describe operator_sum')).rows).toEqual(
        (await fleet.query('describe operator_sum')).rows,
      )
      for (const question of ['slowest-operators', 'regressions'] as const)
        expect(await ask(dataset, question)).toEqual(await ask(fleet, question))
      dataset.close()
    }
    expect((await fleet.query('select count(*) from operator_sum')).rows).toEqual([[sums!.length]])
  })

  test('what is no dataset is an error with its place', async () => {
    await expect(openDataset(at('missing'))).rejects.toThrow(/missing: cannot read: no such file/)
    await expect(openDataset(at('secret.csv'))).rejects.toThrow(/is not a dataset: expected trace\/v=1.*found a file/)
    await expect(openDataset(folder)).rejects.toThrow(/hint: ggml2perfetto export/)
    await expect(openDataset('s3://nobody/dataset')).rejects.toThrow(/httpfs, which is not installed/)
  })

  test('DuckDB is optional', async () => {
    const missing = Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' })
    await expect(loadDuckDb(() => Promise.reject(missing))).rejects.toThrow(/hint: npm install @duckdb\/node-api/)
  })
})
