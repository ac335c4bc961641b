import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, useFolder } from '../cli/helpers.ts'
import { readLog } from './recording.ts'

/** The recorder built for musl by Debian's musl-gcc (musl-tools), which has no headers of the kernel. */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const BUILD = 'build/tests/musl'
const HEADERS = ['/usr/include/linux', '/usr/include/asm-generic', '/usr/include/x86_64-linux-gnu/asm']
const hasMusl =
  spawnSync('musl-gcc', ['--version'], { stdio: 'ignore' }).status === 0 && HEADERS.every((path) => existsSync(path))

useFolder()

;(hasMusl ? describe : describe.skip)('on musl (needs musl-gcc and headers of the kernel, on x64)', () => {
  beforeAll(() => {
    const kernel = at('kernel')
    mkdirSync(kernel)
    for (const path of HEADERS) symlinkSync(path, join(kernel, path.replace(/^.*\//, '')))
    const make = ['-s', '-j', `${availableParallelism()}`, '-C', NATIVE, `BUILD=${BUILD}`, 'CFLAGS=-O1']
    execFileSync('make', [...make, `CC=musl-gcc -isystem ${kernel}`, `${BUILD}/libggml2perfetto.so`])
  }, 240_000)

  test('the recorder loads into a program of musl, and records its calls', async () => {
    const source = fileURLToPath(new URL('calls-program.c', import.meta.url))
    const [library, program, log] = ['libcalls.so', 'calls', 'calls.ggtrace'].map(at) as [string, string, string]
    execFileSync('musl-gcc', ['-O1', '-DMODULE', '-shared', '-fPIC', source, '-o', library])
    execFileSync('musl-gcc', ['-O1', source, library, `-Wl,-rpath,${dirname(library)}`, '-o', program])
    const recorder = join(NATIVE, BUILD, 'libggml2perfetto.so')
    const env = { ...process.env, LD_PRELOAD: recorder, GGML2PERFETTO_OUT: log }
    const { status, stdout, stderr } = spawnSync(program, { env, encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'done\n', stderr: '' })
    const { of, issues, attributes } = await readLog(log)
    expect(issues).toEqual([])
    expect(attributes['executable']).toBe(program)
    expect(of('token').map(({ phase, tokens }) => [phase, tokens])).toEqual([
      ['prefill', 3],
      ...Array.from({ length: 4 }, () => ['decode', 1]),
    ])
  })
})
