import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { convert, type Summary } from '../../lib/index.ts'
import { ROOT } from '../root.ts'

/**
 * Logs of earlier recorders, of format version 0: each converts, with all that it has. Logs of a release are added before
 * its records change.
 */
const LOGS: readonly (readonly [path: string, what: string, calls: number, operators: number, graphs: number])[] = [
  ['test/recorded/old/moe.ggtrace.gz', 'of the first day (2026-11-21)', 9, 2898, 9],
  ['test/recorded/old/tiny.ggtrace.gz', 'by the writer in TypeScript (2026-11-21)', 3, 30, 3],
  ['test/recorded/outside-graphs.ggtrace.gz', 'operators of 20 to 24 bytes (2026-11-21)', 9, 2898, 9],
  ['test/fixtures/memory-samples/nano.ggtrace.gz', 'functions around calls (2026-11-23)', 3, 342, 3],
  ['test/fixtures/findings/slower-type.ggtrace.gz', 'loading, limits of the control group (2026-11-25)', 13, 1898, 13],
  ['test/fixtures/findings/debug-log.ggtrace.gz', "messages for the program's log (2026-11-25)", 11, 858, 11],
  ['test/gpu/logs/nano.ggtrace.gz', 'kernels of CUDA, operators of 12 to 16 bytes (2026-11-26)', 6, 6, 12],
  ['test/numa/distribute.ggtrace.gz', 'pages on NUMA nodes (2026-11-26)', 4, 48, 4],
  ['examples/moe.ggtrace.gz', 'of 2026-11-26', 9, 2898, 9],
  ['test/recorded/prompt.ggtrace.gz', 'of 2026-11-27', 41, 902, 41],
]

async function summaryOf(path: string): Promise<Summary> {
  const pieces = convert({ name: path, source: readFileSync(join(ROOT, path)) })
  for (;;) {
    const next = await pieces.next()
    if (next.done) return next.value[0]!
  }
}

test.each(LOGS)('%s: %s', async (path, _, calls, operators, graphs) => {
  const summary = await summaryOf(path)
  const found = Object.values(summary.calls.by_phase).reduce((sum, { calls }) => sum + calls, 0)
  expect([found, summary.operators, summary.graphs]).toEqual([calls, operators, graphs])
  expect(summary.issues.map(({ title }) => title)).toEqual([])
})
