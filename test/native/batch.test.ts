import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { cc } from '../compile.ts'

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const canCompile = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0

;(canCompile ? test : test.skip)('batches of llama.cpp 0.7.0, however many there are (needs cc and Linux)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-batch-'))
  const program = join(folder, 'batch')
  const sources = ['test/batch.c', 'recorder/batch.c'].map((name) => join(NATIVE, name))
  cc('-pthread', '-fsanitize=address,undefined', `-I${NATIVE}`, '-o', program, ...sources)
  const { status, stderr } = spawnSync(program, { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  rmSync(folder, { recursive: true })
})
