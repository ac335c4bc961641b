import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ensureLlama, hasLlama, LIB } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import { EXPECTED, functionsOf } from './entries-functions.ts'

/** Redirected entries of functions (native/recorder/entry.h), of which the recorder's are a few: here, of generated ones. */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const NATIVE = pathOf('../../native')
const SOURCES = ['entry', 'instruction', 'register-use', 'symbols'].map((name) => join(NATIVE, `recorder/${name}.c`))
const INCLUDES = [`-I${NATIVE}`, `-I${pathOf('.')}`]
const SEED = 20261127
const ROUNDS = 6

const has = (tool: string) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0
const onX64 = process.platform === 'linux' && process.arch === 'x64' && has('cc') ? describe : describe.skip

/** Why a function of a compiler may be left alone. */
const REASONS =
  /^(it is shorter than a jump|it begins with a call|it jumps to its first instructions|it jumps by a table, whose targets are not known)$/

interface Line {
  readonly name: string
  readonly shape: string
  readonly what: string
  readonly isSame: boolean
  readonly direct: number
  readonly hits: number
}

onX64('entries of functions (needs linux-x64 and cc)', () => {
  let folder = ''
  const objects = SOURCES.map((_, i) => `tested-${i}.o`)
  const cc = (compiler: string, ...args: readonly string[]) => execFileSync(compiler, [...args], { cwd: folder })
  const { functions, hooks, names } = functionsOf(SEED, ROUNDS)

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-entries-'))
    writeFileSync(join(folder, 'functions.c'), functions)
    writeFileSync(join(folder, 'hooks.c'), hooks)
    const flags = ['-std=gnu11', '-O1', '-fPIC', '-fvisibility=hidden', ...INCLUDES, '-c']
    for (const [i, source] of SOURCES.entries()) cc('cc', ...flags, source, '-o', objects[i]!)
    cc('cc', ...flags, '-Wall', '-Wextra', '-Werror', pathOf('entries-program.c'), '-o', 'program.o')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** What becomes of each function in a program that a compiler makes. */
  function redirected(compiler: string, flags: readonly string[]): readonly Line[] {
    const all = ['-std=gnu11', '-w', '-fwrapv', ...INCLUDES, ...flags]
    cc(compiler, ...all, 'functions.c', 'hooks.c', 'program.o', ...objects, '-o', 'entries')
    const { status, signal, stdout, stderr } = spawnSync(join(folder, 'entries'), { encoding: 'utf8' })
    expect([status, signal, stderr]).toEqual([0, null, ''])
    return stdout
      .trim()
      .split('\n')
      .map((line) => {
        const [name, what, same, direct, hits] = line.split('\t') as [string, string, string, string, string]
        const shape = name.replace(/^f_|_\d+$/g, '')
        return { name, shape, what, isSame: same === 'same', direct: Number(direct), hits: Number(hits) }
      })
  }

  const isDone = ({ what }: Line) => what === 'redirected' || what === 'keeping'

  function expectRight(lines: readonly Line[]): void {
    expect(lines.map(({ name }) => name)).toEqual(names)
    expect(lines.filter(({ isSame }) => !isSame)).toEqual([])
    for (const line of lines) {
      if (isDone(line)) expect([line.name, line.hits >= line.direct]).toEqual([line.name, true])
      else
        expect([line.name, line.what, line.hits]).toEqual([
          line.name,
          EXPECTED[line.name] ?? expect.stringMatching(REASONS),
          0,
        ])
    }
    // Those like the recorder's: they call other libraries.
    const called = lines.filter(({ shape }) => ['outside', 'unlikely', 'pointer'].includes(shape))
    expect(called.filter(({ what }) => what !== 'redirected')).toEqual([])
    expect(lines.filter(isDone).length).toBeGreaterThan(lines.length * 0.6)
    expect(
      Object.fromEntries(lines.filter(({ name }) => name in EXPECTED).map(({ name, what }) => [name, what])),
    ).toEqual(EXPECTED)
  }

  const COMPILERS = ['gcc', 'clang'].filter(has)
  const LEVELS = ['-O0', '-O1', '-O2', '-O3']
  const KINDS = [
    ['-fcf-protection'],
    ['-fcf-protection=none', '-fno-pie', '-no-pie'],
    ['-march=native', '-fomit-frame-pointer', '-fno-plt'],
  ]
  const builds = COMPILERS.flatMap((compiler) =>
    LEVELS.flatMap((level) => KINDS.map((kind) => [compiler, level, kind.join(' ')] as const)),
  )
  // `npm test` has each compiler, each level and each kind.
  const isFirst = (i: number) => i % 5 === 2
  const part = (wanted: boolean) => builds.filter((_, i) => isFirst(i) === wanted)

  test.each(part(true))('%s %s %s', (compiler, level, kind) => {
    const lines = redirected(compiler, [level, ...kind.split(' ')])
    expectRight(lines)
  })

  inLong(test).each(part(false))('%s %s %s', (compiler, level, kind) => {
    expectRight(redirected(compiler, [level, ...kind.split(' ')]))
  })

  /** Instructions of a library, as objdump has them: the bytes of each. */
  function instructionsOf(path: string): string {
    const { stdout } = spawnSync('objdump', ['-d', '-w', path], { encoding: 'utf8', maxBuffer: 1 << 30 })
    const lines = [...stdout.matchAll(/^ +[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*\t(\S+)/gm)]
    expect(lines.length).toBeGreaterThan(10_000)
    return lines
      .filter(([, , text]) => text !== '(bad)')
      .map(([, bytes]) => `${bytes}\n`)
      .join('')
  }

  const libc = '/lib/x86_64-linux-gnu/libc.so.6'
  const libraries = ['libggml-cpu-sapphirerapids.so', 'libggml-base.so', 'libllama.so'].map((name) => join(LIB, name))
  const measured = hasLlama() && has('objdump') ? test : test.skip

  async function expectLengths(paths: readonly string[]): Promise<void> {
    await ensureLlama()
    cc('cc', '-std=gnu11', '-w', ...INCLUDES, 'functions.c', 'hooks.c', 'program.o', ...objects, '-o', 'lengths')
    for (const path of paths.filter((path) => existsSync(path))) {
      const input = instructionsOf(path)
      const { stdout, stderr } = spawnSync(join(folder, 'lengths'), ['lengths'], {
        input,
        encoding: 'utf8',
        maxBuffer: 1 << 30,
      })
      const [right, wrong, unknown] = stdout.split(' ').map(Number)
      expect([path, wrong, unknown, stderr.slice(0, 2000)]).toEqual([path, 0, 0, ''])
      expect(right).toBe(input.split('\n').length - 1)
    }
  }

  measured('lengths of instructions are those of objdump (needs objdump and npm)', () =>
    expectLengths(libraries.slice(0, 1)),
  )
  inLong(measured)('also those of other libraries', () => expectLengths([...libraries.slice(1), libc]))
})
