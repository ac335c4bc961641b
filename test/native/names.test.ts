import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { hasLlama } from '../llama/testbed.ts'
import { inFolder, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** Names of tensors in a ggml that was built with another GGML_MAX_NAME: whole, and compared as a whole. */

const llama = hasLlama() ? describe : describe.skip
const SOURCE = fileURLToPath(new URL('names-program.c', import.meta.url))
/** They differ behind the 64th byte only. */
const NAMES = ['first', 'second', 'third', 'fourth'].map((end) => `${'long-'.repeat(14)}${end}`)

llama('names of tensors', () => {
  useRecorder()

  test.each([64, 128, 200])('of at most %i bytes', async (bytes) => {
    const folder = inFolder(`names-${bytes}`)
    mkdirSync(folder)
    const flags = ['-O1', `-DGGML_MAX_NAME=${bytes}`, SOURCE]
    cc(...flags, '-DMODULE', '-shared', '-fPIC', '-o', join(folder, 'libnamed.so'))
    const program = join(folder, 'program')
    cc(...flags, `-L${folder}`, `-Wl,-rpath,${folder}`, '-lnamed', '-o', program)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { ...process.env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: 'graph' }
    execFileSync(program, NAMES, { env })
    const { of, text, issues } = await readLog(log)
    expect(issues).toEqual([])
    expect(of('graph')).toHaveLength(NAMES.length)
    const names = new Set(of('tensor').map(({ name }) => text(name)))
    names.delete('')
    expect([...names]).toEqual([...new Set(NAMES.map((name) => name.slice(0, bytes - 1)))])
  })
})
