import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, folder, run, useFolder } from '../cli/helpers.ts'
import { readLog } from './recording.ts'

/** Programs that run on musl, on a system with glibc (musl-tools of Debian), and on one with musl alone. */

const LOADER = '/lib/ld-musl-x86_64.so.1'
const hasMusl = spawnSync('musl-gcc', ['--version'], { stdio: 'ignore' }).status === 0 && existsSync(LOADER)
const SOURCE = fileURLToPath(new URL('calls-program.c', import.meta.url))
/** What calls-program.c counts itself. */
const COUNTED = 'done: 5 calls, 7 tokens\n'

useFolder()

/** The log has the calls that the program counted. */
async function expectCalls(log: string): Promise<void> {
  const { of, issues } = await readLog(at(log))
  expect(issues).toEqual([])
  const calls = of('token').map(({ phase, tokens }) => [phase, tokens] as const)
  expect(calls).toEqual([['prefill', 3], ...Array.from({ length: 4 }, () => ['decode', 1])])
  const tokens = calls.reduce((sum, [, tokens]) => sum + tokens!, 0)
  expect(`done: ${calls.length} calls, ${tokens} tokens\n`).toBe(COUNTED)
}

;(hasMusl ? describe : describe.skip)('on musl (needs musl-gcc, musl and headers of the kernel, on x64)', () => {
  const env = () => ({ XDG_CACHE_HOME: at('cache'), CC: '' })
  const recorder = () => execFileSync('find', [at('cache'), '-name', '*.so'], { encoding: 'utf8' }).trim()
  beforeAll(() => {
    execFileSync('musl-gcc', [
      '-O1',
      '-DMODULE',
      '-shared',
      '-fPIC',
      '-Wl,-soname,libcalls.so',
      SOURCE,
      '-o',
      at('libcalls.so'),
    ])
    execFileSync('musl-gcc', ['-O1', SOURCE, at('libcalls.so'), `-Wl,-rpath,${folder}`, '-o', at('calls')])
  })

  test('record builds the recorder for it, once, and records a program by its ELF interpreter', async () => {
    const first = run(['record', '-o', 'calls.ggtrace', './calls'], { env: env() })
    expect(first).toMatchObject({ code: 0, stdout: COUNTED })
    expect(first.stderr).toMatch(/^building the recorder with musl-gcc, once\n(.*\n)*calls\.ggtrace: 5 calls/)
    expect(recorder()).toMatch(/-x64-musl-[0-9a-f]{16}\/libggml2perfetto\.so$/)
    await expectCalls('calls.ggtrace')
    // Its loader as a program has no interpreter.
    const loaded = run(['record', '-o', 'loaded.ggtrace', LOADER, './calls'], { env: env() })
    expect(loaded).toMatchObject({ code: 0, stdout: COUNTED, stderr: expect.not.stringMatching(/building/) })
    await expectCalls('loaded.ggtrace')
    const trace = run(['calls.ggtrace', '-o', 'calls.pftrace'])
    expect(trace).toMatchObject({ code: 0, stdout: expect.stringMatching(/wrote calls\.pftrace/) })
    const count = "select count(*) as n from slice where category = 'token'"
    expect(run(['query', 'calls.pftrace', count, '--format', 'csv']).stdout).toMatch(/^n\n5\n$/)
  }, 240_000)

  test('a compiler for another libc is named', () => {
    // A library as quick to build as possible that needs glibc.
    const source = 'const char * gnu_get_libc_version(void); const char * v(void) { return gnu_get_libc_version(); }'
    const build = `while [ "$1" != -o ]; do shift; done; echo '${source}' | exec cc -shared -fPIC -x c - -o "$2"`
    writeFileSync(at('cc'), `#!/bin/sh\n${build}\n`, { mode: 0o755 })
    const { code, stderr } = run(['record', './calls'], { env: { XDG_CACHE_HOME: at('other'), CC: at('cc') } })
    const named = /cc: builds the recorder for another libc than that of the program, musl .*\nhint: .*musl-tools/
    expect([code, stderr]).toEqual([1, expect.stringMatching(named)])
  })

  const rootTest = process.getuid?.() === 0 ? test : test.skip
  rootTest('in a root with musl alone (needs root)', async () => {
    const root = at('root')
    mkdirSync(join(root, 'lib'), { recursive: true })
    for (const [from, to] of [
      [LOADER, LOADER],
      [at('calls'), '/calls'],
      [at('libcalls.so'), '/lib/libcalls.so'],
      [recorder(), '/lib/libggml2perfetto.so'],
    ] as const) {
      mkdirSync(dirname(join(root, to)), { recursive: true })
      copyFileSync(from, join(root, to))
    }
    // chroot itself runs on glibc: LD_PRELOAD in its environment would be its own.
    const args = [root, LOADER, '--library-path', '/lib', '--preload', '/lib/libggml2perfetto.so', '/calls']
    const own = { ...process.env, GGML2PERFETTO_OUT: '/calls.ggtrace' }
    const { status, stdout, stderr } = spawnSync('chroot', args, { env: own, encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: COUNTED, stderr: '' })
    await expectCalls('root/calls.ggtrace')
  })
})
