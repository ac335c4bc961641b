import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { NODE, run } from '../cli/helpers.ts'
import { fetched, takePort } from '../cli/open-helpers.ts'
import { sha256 } from '../cli/record-helpers.ts'
import { type Call, ensureLlama, hasLlama, LIB, type Line, model, runner } from '../llama/testbed.ts'
import { NANO_MOE, readLog } from '../native/recording.ts'

/**
 * The installed package in a root directory of its own, with Node, a program that uses llama.cpp, and the libraries of both; a folder for the user and
 * an empty /tmp. There is no shell, no compiler, no /proc, /sys or /dev.
 */

const SOURCE = fileURLToPath(new URL('../native/calls-program.c', import.meta.url))
const MUSL_LOADER = '/lib/ld-musl-x86_64.so.1'
const hasMusl = existsSync(MUSL_LOADER) && spawnSync('musl-gcc', ['--version']).status === 0
const canChroot = process.getuid?.() === 0 && hasLlama()
/** Where our commands are in the root; paths are relative to the root, which is the working directory. */
const CLI = 'home/node_modules/ggml2perfetto/dist/ggml2perfetto.js'
const TRACE = 'home/run.pftrace'

let root = ''

function place(path: string, to = path): void {
  const copy = join(root, to)
  if (existsSync(copy)) return
  mkdirSync(dirname(copy), { recursive: true })
  copyFileSync(path, copy)
}

/** Places a program or a library, and the libraries that it needs, where they are here. */
function placeLinked(path: string, to = path): void {
  place(path, to)
  const needed = execFileSync('ldd', [path], { encoding: 'utf8' })
  for (const [, library] of needed.matchAll(/(?:=> |^\t)(\/\S+) \(0x/gm)) place(library!)
}

const commandIn = (args: readonly string[]) => {
  const [, ...flags] = NODE
  return [root, '/usr/bin/node', ...flags, CLI, ...args]
}
/** Without variables that name what is not there. */
const IN_ROOT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/home' }

/** Runs our command in the root. */
function inRoot(args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync('chroot', commandIn(args), { env: IN_ROOT, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

/** Runs our command in the root, and here, on the same files. */
const inBoth = (args: readonly string[]) => {
  const { code, stdout, stderr } = run(args, { cwd: root, env: { HOME: join(root, 'home'), XDG_CACHE_HOME: '' } })
  return [inRoot(args), { code, stdout, stderr }] as const
}

/** The files below a folder of the root, with their hashes. */
const filesIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort()
    .map((path) => [path.slice(join(root, folder).length), sha256(path)])

/** Serves the trace in the root, and fetches it as the UI does. */
async function openInRoot() {
  const port = await takePort()
  const child = spawn('chroot', commandIn(['open', TRACE, '--no-browser']), { env: IN_ROOT })
  try {
    let printed = ''
    const traceUrl = await new Promise<string>((resolve, reject) => {
      child.stdout.on('data', (text) => {
        printed += text
        const url = /^https:\/\/ui\.perfetto\.dev\/#!\/\?(.*)\n/m.exec(printed)?.[1]
        if (url) resolve(new URLSearchParams(url).get('url')!)
      })
      child.stderr.on('data', (text) => (printed += text))
      child.once('close', () => reject(new Error(printed)))
    })
    const bytes = await fetched(traceUrl)
    const [code] = child.exitCode === null ? await once(child, 'close') : [child.exitCode]
    return { code, bytes }
  } finally {
    child.kill('SIGKILL')
    port.close()
  }
}

/** `installed`: the folder in which the package was installed. */
export function testInEmptyRoot(installed: () => string): void {
  const describeIf = canChroot ? describe : describe.skip
  describeIf('in a root with Node alone, without a compiler, a shell, /proc, /sys and /dev (needs root)', () => {
    beforeAll(async () => {
      await ensureLlama()
      root = mkdtempSync(join(tmpdir(), 'ggml2perfetto-root-'))
      mkdirSync(join(root, 'tmp'), { mode: 0o1777 })
      placeLinked(process.execPath, '/usr/bin/node')
      cpSync(join(installed(), 'node_modules'), join(root, 'home/node_modules'), { recursive: true })
      placeLinked(await runner(), '/home/decode')
      for (const name of readdirSync(LIB)) if (name.endsWith('.so')) placeLinked(join(LIB, name))
      place((await model(NANO_MOE)).path, '/home/model.gguf')
      if (!hasMusl) return
      place(MUSL_LOADER)
      execFileSync('musl-gcc', [
        '-DMODULE',
        '-shared',
        '-fPIC',
        '-Wl,-soname,libcalls.so',
        SOURCE,
        '-o',
        join(root, 'lib/libcalls.so'),
      ])
      execFileSync('musl-gcc', [
        SOURCE,
        join(root, 'lib/libcalls.so'),
        '-Wl,-rpath,/lib',
        '-o',
        join(root, 'home/calls'),
      ])
    })
    afterAll(() => rmSync(root, { recursive: true, force: true }))

    test('record has the calls and operators of llama.cpp, by the recorder of the package', async () => {
      const program = [
        'home/decode',
        '--lib',
        LIB,
        '--model',
        'home/model.gguf',
        '--threads',
        '2',
        '--decode',
        '6',
        '--times',
      ]
      const before = readdirSync(join(root, 'tmp')) // a checkout in /tmp
      const { code, stdout, stderr } = inRoot(['record', '-o', 'home/run.ggtrace', ...program])
      expect([code, stderr]).toEqual([0, expect.not.stringMatching(/building|error/)])
      const lines = stdout.split('\n').filter((line) => line.startsWith('{'))
      const called = lines.map((line) => JSON.parse(line) as Line).filter(({ event }) => event === 'call') as Call[]
      const { of, issues } = await readLog(join(root, 'home/run.ggtrace'))
      expect(issues).toEqual([])
      expect(called.length).toBe(7)
      expect(of('token').map(({ tokens }) => tokens)).toEqual(called.map(({ tokens }) => tokens))
      expect(of('operator').length).toBeGreaterThan(100)
      // Nothing was built, copied or left.
      expect([readdirSync(join(root, 'tmp')), existsSync(join(root, 'home/.cache'))]).toEqual([before, false])
    })

    test('convert, query, stats, why, dag, report and export do what they do here', () => {
      const [there, here] = inBoth(['home/run.ggtrace', '--force', '-o', TRACE])
      expect([there.code, there]).toEqual([0, here])
      const count = "select count(*) from slice where category = 'operator'"
      for (const args of [
        ['check', TRACE],
        ['query', TRACE, count],
        ['stats', 'home/run.ggtrace'],
        ['stats', 'home/run.ggtrace', '--json'],
        ['why', 'home/run.ggtrace'],
        ['dag', 'home/run.ggtrace', '-o', '-'],
        ['report', 'home/run.ggtrace', '-o', '-'],
      ]) {
        const [there, here] = inBoth(args)
        expect([args, there.code, there]).toEqual([args, 0, here])
        expect(there.stdout.length).toBeGreaterThan(0)
      }
      const toDataset = (folder: string) => ['export', 'home/run.ggtrace', '-o', folder]
      expect(inRoot(toDataset('home/there')).code).toBe(0)
      expect(run(toDataset('home/here'), { cwd: root }).code).toBe(0)
      expect(filesIn('home/there')).toEqual(filesIn('home/here'))
      expect(filesIn('home/there').length).toBeGreaterThan(5)
    })

    test('open serves the trace', async () => {
      const { code, bytes } = await openInRoot()
      expect([code, bytes.equals(readFileSync(join(root, TRACE)))]).toEqual([0, true])
    })

    const muslTest = hasMusl ? test : test.skip
    muslTest('record has the calls of a program of musl, by the recorder for it (needs musl-gcc)', async () => {
      const { code, stdout, stderr } = inRoot(['record', '-o', 'home/musl.ggtrace', 'home/calls'])
      expect([code, stdout, stderr]).toEqual([
        0,
        'done: 5 calls, 7 tokens\n',
        expect.stringMatching(/musl\.ggtrace: 5 calls/),
      ])
      const { of, issues } = await readLog(join(root, 'home/musl.ggtrace'))
      expect([issues, of('token').map(({ tokens }) => tokens)]).toEqual([[], [3, 1, 1, 1, 1]])
    })
  })
}
