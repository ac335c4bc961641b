import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { openTrace } from '../../lib/node.ts'
import { converted } from '../line/support.ts'
import { ZERO_NS } from '../origin.ts'
import * as figures from './nsys-figures.ts'
import { drawnLaunches } from './nsys-launches.ts'

/**
 * Whole reports of Nsight Systems, which are not ours to keep here: what their tables hold by SQL is what their traces hold
 * by SQL. `NSYS_REPORTS` names a folder of `.sqlite` files and of CSV reports made of them.
 */

const FOLDER = process.env['NSYS_REPORTS']
const files = FOLDER === undefined ? [] : readdirSync(FOLDER).sort()
const bytesOf = (name: string) => new Uint8Array(readFileSync(join(FOLDER!, name)))
const reports = files.filter((name) => name.endsWith('.sqlite'))
const gpuTraces = files.filter((name) => name.includes('_cuda_gpu_trace') && name.endsWith('.csv'))
const nvtxTraces = files.filter((name) => name.includes('_nvtx_pushpop_trace') && name.endsWith('.csv'))

/** Where a person looks: on the terminal. */
const show = (report: string, kind: string, sums: readonly unknown[]) =>
  process.stdout.write(`| ${[report, kind, ...sums].join(' | ')} |\n`)

async function opened<T>(bytes: Uint8Array, use: (trace: figures.Trace) => T): Promise<T> {
  const trace = await openTrace(bytes)
  try {
    expect(trace.problems()).toEqual([])
    return use(trace)
  } finally {
    trace.close()
  }
}

const all = FOLDER === undefined ? describe.skip : describe

all('reports (NSYS_REPORTS names their folder)', () => {
  test.each(reports)('%s', async (name) => {
    const bytes = bytesOf(name)
    const trace = await converted(bytes, { osRuntime: true })
    const told = figures.withReport(bytes, (db) => {
      const { rows, figures: sums } = figures.told(db)
      expect(figures.copyKinds(db)).toEqual(figures.COPIES)
      figures.makeLaunches(db)
      const more = { nvtx_gpu: figures.toldProjections(db), running: figures.toldRunning(db) }
      return { rows, sums, more, launches: figures.toldLaunches(db) }
    })
    await opened(trace, (open) => {
      const kinds = Object.keys(told.sums)
      const drawn = figures.drawn(open, figures.KIND_NAMES)
      for (const kind of figures.KIND_NAMES) {
        expect([kind, drawn.figures[kind]]).toEqual([kind, told.sums[kind] ?? [0n, null, null, null]])
        if (kinds.includes(kind)) show(name, kind, drawn.figures[kind]!)
        expect(drawn.rows[kind]).toEqual(told.rows[kind] ?? [])
      }
      const more = { nvtx_gpu: figures.drawnProjections(open), running: figures.drawnRunning(open) }
      expect(more).toEqual(told.more)
      for (const [kind, sums] of Object.entries(more)) if (sums[0] !== 0n) show(name, kind, sums)
    })
    const launches = drawnLaunches(trace)
    expect(launches).toEqual(told.launches)
    show(name, 'launched', [launches.length])
  })

  test.each(reports)('%s: neither host, user, path nor environment is in the trace', async (name) => {
    const bytes = bytesOf(name)
    const secrets = figures.withReport(bytes, figures.secretsOf)
    expect(secrets.length).toBeGreaterThan(100)
    for (const to of ['perfetto', 'json'] as const) {
      const trace = Buffer.from(await converted(bytes, { to, detail: 'full', osRuntime: true })).toString('latin1')
      expect(secrets.filter((secret) => trace.includes(secret))).toEqual([])
    }
  })
})

all('CSV reports', () => {
  const workIn = (bytes: Uint8Array) =>
    converted(bytes).then((trace) =>
      opened(
        trace,
        (open) =>
          open.query(`SELECT s.ts + ${ZERO_NS}, dur, s.name, t.name FROM gpu_slice s JOIN track t ON t.id = track_id`)
            .rows,
      ),
    )

  test.each(gpuTraces)(
    '%s: every row is in its trace, and in that of its report: start, duration, name, stream',
    async (name) => {
      const lines = new TextDecoder().decode(bytesOf(name)).trim().split('\n')
      const at = (column: string) => lines[0]!.split(',').indexOf(column)
      const rows = lines.slice(1).map((line) => {
        const cells = [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, cell]) => cell!)
        const called = cells[at('Name')]!.replace(/^"(.*)"$/, '$1').replaceAll('""', '"')
        return [cells[0], cells[1], called, `stream ${cells[at('Strm')]}`].join(' ')
      })
      const ofStream = (title: unknown) => /^stream \d+/.exec(`${title}`)?.[0]
      const own = await workIn(bytesOf(name))
      expect(own.map(([ts, dur, called, title]) => [ts, dur, called, ofStream(title)].join(' ')).sort()).toEqual(
        rows.sort(),
      )
      const report = bytesOf(name.replace(/_cuda_gpu_trace.*/, '.sqlite'))
      const origin = figures.withReport(report, figures.originOf)
      const whole = (await workIn(report)).map(([ts, dur, called, title]) =>
        [BigInt(ts as number) - origin, dur, called, ofStream(title)].join(' '),
      )
      expect(whole.sort()).toEqual(rows)
      show(name, 'rows', [rows.length])
    },
  )

  test.each(nvtxTraces)('%s: every row is in its trace', async (name) => {
    const lines = new TextDecoder().decode(bytesOf(name)).trim().split('\n').slice(1)
    const cells = lines.map(
      (line) => /^(\d+),(\d+),\d+,\d+,\d+,"?([^:]*):(?:""|[^"])*?"?,\d+,(\d+),\d+,\d+,(\d+),\d*,([:\d]+),/.exec(line)!,
    )
    const domains = new Map(cells.map(([, , , domain, , id]) => [id, domain]))
    // nsys counts levels through all domains; each has rows of its own here.
    const rows = cells.map(([, start, end, domain, tid, id, stack]) => {
      const level = stack!.split(':').filter((outer) => outer !== id && domains.get(outer) === domain).length
      return [start, BigInt(end!) - BigInt(start!), tid, level].join(' ')
    })
    const found = await opened(await converted(bytesOf(name)), (open) =>
      open
        .query(
          `SELECT ts + ${ZERO_NS}, dur, t.name, depth FROM slice s JOIN track t ON t.id = track_id WHERE category = 'nvtx'`,
        )
        .rows.map(([ts, dur, title, depth]) => [ts, dur, /\d+$/.exec(`${title}`)?.[0], depth].join(' ')),
    )
    expect(found.sort()).toEqual(rows.sort())
    show(name, 'rows', [rows.length])
  })
})
