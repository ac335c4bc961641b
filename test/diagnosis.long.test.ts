import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { hasLlama } from './llama/testbed.ts'
import './live.ts'

/**
 * A part of the benchmark of diagnosis: causes that a busy machine rarely hides. All causes, and what they are measured with, are in
 * scripts/diagnosis/README.md.
 */
const CAUSES = [
  ...['prompt-again', 'long-prompt', 'slots-taken', 'cancelled', 'server-grammar', 'server-samplers'],
  ...['no-reuse', 'odd-heads', 'few-layers', 'useless-drafts', 'stopped-program'],
]

const isRoot = process.getuid?.() === 0
const real = hasLlama() && isRoot ? test : test.skip

real(
  'planted causes are named first by record, convert and why, and the MCP server answers the same (needs linux-x64, cc, c++, make and root)',
  () => {
    const bench = fileURLToPath(new URL('../scripts/diagnosis/bench.mjs', import.meta.url))
    const { status, stdout } = spawnSync(process.execPath, [bench, '--agent', '--runs', '1', '--only', CAUSES.join()], {
      encoding: 'utf8',
    })
    expect(stdout.match(/^(?:WRONG|NOT PLANTED) .*(?:\n {9}.*)*/gm)).toBeNull()
    expect(stdout.match(/^right /gm)?.length).toBe(CAUSES.length)
    expect(status).toBe(0)
  },
  1_800_000, // it may compile llama-server first
)
