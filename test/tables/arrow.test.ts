import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { RecordBatchReader, tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { exportArrow, exportRun } from '../../lib/datasets.ts'
import { ROW_GROUP } from '../../lib/tables/table-file.ts'
import { TABLE_NAMES, TABLES, type TableName, Tables } from '../../lib/tables.ts'
import { run, useFolder } from '../cli/helpers.ts'

/** Streams of Arrow have the rows of the Parquet files, read by the library of Apache Arrow. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MOE = join(ROOT, 'examples/moe.ggtrace.gz')
useFolder()
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-arrow-'))
const streams = join(folder, 'streams')
afterAll(() => rmSync(folder, { recursive: true }))

type Row = Readonly<Record<string, unknown>>

const arrowRows = (bytes: Uint8Array): Row[] =>
  tableFromIPC(bytes)
    .toArray()
    .map((row) => row.toJSON())

async function parquetRows(bytes: Uint8Array): Promise<Row[]> {
  const file = new Uint8Array(bytes).buffer
  return parquetReadObjects({ file, compressors: { GZIP: (page: Uint8Array) => gunzipSync(page) } })
}

async function bytesOf(tables: Tables): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const { bytes } of tables.finish()) pieces.push(bytes)
  return Buffer.concat(pieces)
}

beforeAll(() => exportArrow(MOE, streams, '1.0'))

test('all tables of a run: columns and rows are those of the Parquet files', async () => {
  const dataset = join(folder, 'dataset')
  const { rows } = await exportRun(MOE, dataset, '1.0')
  expect(readdirSync(streams).sort()).toEqual(
    Object.keys(rows)
      .map((name) => `${name}.arrows`)
      .sort(),
  )
  for (const path of readdirSync(dataset, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.parquet')) continue
    const table = path.split(/[\\/]/)[0] as TableName
    const bytes = readFileSync(join(streams, `${table}.arrows`))
    const { schema } = tableFromIPC(bytes)
    expect(schema.fields.map(({ name, nullable }) => [name, nullable])).toEqual(
      Object.entries(TABLES[table].columns).map(([name, { nullable }]) => [name, nullable]),
    )
    expect(schema.metadata.get('ggml2perfetto.table')).toBe(table)
    const wanted = await parquetRows(readFileSync(join(dataset, path)))
    expect(wanted).toHaveLength(rows[table]!)
    expect(arrowRows(bytes)).toEqual(wanted)
  }
})

test('several record batches, with dictionaries of their own; all values that there are', async () => {
  const name = (i: number) => (i < ROW_GROUP ? `a 'quote" ${i % 3}` : `\u0000 漢字 😀 ${i % 2}`)
  const tables = new Tables({ traceId: 'f'.repeat(32), format: 'arrow', createdBy: 'test version 1' })
  const count = ROW_GROUP + 11
  for (let i = 0; i < count; i++)
    tables.add('counter', { call: i % 2 ? null : -i, name: name(i), unit: '', ts_ns: i * 2 ** 33 - 1, value: i / 3 })
  const bytes = await bytesOf(tables)
  const batches = [...RecordBatchReader.from(bytes)]
  expect(batches.map(({ numRows }) => numRows)).toEqual([ROW_GROUP, 11])
  const values = batches.flatMap((batch) => Array.from({ length: 11 }, (_, i) => batch.get(i)!.toJSON() as Row))
  expect(values).toHaveLength(22)
  for (const { call, name: found, unit, ts_ns, value } of values) {
    const i = Math.round(3 * (value as number))
    expect([call, found, unit, ts_ns].join()).toBe(
      [i % 2 ? null : BigInt(-i), name(i), '', BigInt(i) * 2n ** 33n - 1n].join(),
    )
  }
})

test('one table as a file; no rows, several runs and options of datasets are refused', async () => {
  const file = join(folder, 'one', 'operator.arrows')
  const one = run(['export', MOE, '--to', 'arrow', '--table', 'operator', '-o', file])
  expect(one.stderr + one.stdout).toMatch(/1 run written to .*operator\.arrows: /)
  expect(arrowRows(readFileSync(file))).toEqual(arrowRows(readFileSync(join(streams, 'operator.arrows'))))
  expect(readdirSync(join(folder, 'one'))).toEqual(['operator.arrows'])
  const none = exportArrow(MOE, join(folder, 'one', 'gpu.arrows'), '1.0', { table: 'gpu' })
  await expect(none).rejects.toThrow(/expected rows of the table gpu, found those of /)
  expect(existsSync(join(folder, 'one', 'gpu.arrows'))).toBe(false)
  const two = run(['export', MOE, MOE, '--to', 'arrow', '-o', folder])
  expect([two.code, two.stderr]).toEqual([1, expect.stringMatching(/--to arrow writes one run; found 2 logs/)])
})

test('a folder is of one run: files of tables that it lacks are removed', async () => {
  const again = join(folder, 'again')
  await exportArrow(MOE, again, '1.0')
  writeFileSync(join(again, 'gpu.arrows'), '')
  writeFileSync(join(again, 'notes.txt'), '')
  const { rows } = await exportArrow(MOE, again, '1.0')
  const files = TABLE_NAMES.filter((name) => rows[name]).map((name) => `${name}.arrows`)
  expect(readdirSync(again).sort()).toEqual([...files, 'notes.txt'].sort())
})
