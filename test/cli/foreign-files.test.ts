import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, cpus, hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect } from '@jest/globals'
import type { Analysis } from '../../lib/index.ts'
import { inLong } from '../long.ts'
import { begun, runCalls } from '../read/ggtrace-logs.ts'
import { foundPeaks, PRINTS_FOUND } from './found-peaks.ts'
import { at, run } from './helpers.ts'
import {
  canRecord,
  canRun,
  compile,
  linuxTest,
  rootTest,
  script,
  unless,
  useProgram,
  writeSums,
} from './record-helpers.ts'

/** Whose file is it? What another user can have put at a place that everybody can guess is named, and not used. */

useProgram()

/** The user `nobody`. */
const OTHER = 65534
const setprivTest = unless(process.getuid?.() !== 0 || !canRun('setpriv', '--version'))

/** What a planted library or program does. */
const isUsed = () => existsSync(at('used'))
const KEPT = 'ggml2perfetto'

const named = (path: string, why = `belongs to another user (uid ${OTHER})`) =>
  expect.stringMatching(
    new RegExp(
      `${path.replaceAll(/[.+*]/g, '\\$&')}: is not used: [^\\n]*${why.replaceAll(/[()]/g, '\\$&')}\\nhint: \\S`,
    ),
  )

const find = (folder: string, name: string) =>
  execFileSync('find', [folder, '-name', name], { encoding: 'utf8' }).trim()

/** A copy of the cache, and the path in it of what was built under a name. */
function cacheWith(name: string) {
  const cache = at(`cache-${readdirSync(at('.')).length}`)
  cpSync(at('cache'), cache, { recursive: true })
  chmodSync(cache, 0o700)
  return { cache, path: find(cache, name), cli: (...args: string[]) => run(args, { env: { XDG_CACHE_HOME: cache } }) }
}

const record = () => ['record', '-o', 'run.ggtrace', './caller']

beforeAll(() => {
  const constructed = `#include <fcntl.h>\n__attribute__((constructor)) static void use(void) { open("${at('used')}", O_CREAT | O_WRONLY, 0644); }`
  compile('planted.so', constructed, '-shared', '-fPIC')
  script('planted.sh', `#!/bin/sh\ntouch '${at('used')}'\n`)
  if (!canRecord) return
  for (const [name, args] of [
    ['libggml2perfetto-nvtx.so', ['nvtx']],
    ['peaks', ['peaks']],
  ] as const) {
    run(args)
    expect(find(at('cache'), name)).toMatch(/^\//)
  }
  // A measuring program that always finds the same: its figures are kept.
  const measuring = dirname(find(at('cache'), 'peaks'))
  cpSync(measuring, at('measuring'), { recursive: true })
  writeFileSync(join(measuring, 'found.json'), foundPeaks(0))
  writeFileSync(join(measuring, 'peaks'), PRINTS_FOUND)
  writeSums(measuring)
  run(['peaks', '--fresh'])
  rmSync(measuring, { recursive: true })
  renameSync(at('measuring'), measuring)
  const facts = { 'ggml.version': '1.2', 'library.ggml': at('libraries/libggml-base.so') }
  const writer = begun({ cpu: cpus()[0]!.model.trim(), cpus: String(cpus().length), ...facts })
  runCalls(writer, [5, 1, 1], 1)
  writer.end(1e6)
  writeFileSync(at('own.ggtrace'), writer.take())
})

/** Files of the cache that are run, with what runs them. */
const RUN = [
  ['libggml2perfetto.so', 'planted.so', record],
  ['libggml2perfetto-nvtx.so', 'planted.so', () => ['nvtx']],
  ['peaks', 'planted.sh', () => ['peaks', '--fresh']],
] as const

describe.each(RUN)('%s', (name, planted, args) => {
  /** Another file takes its place. */
  const place = (path: string) => {
    rmSync(path)
    cpSync(at(planted), path)
    chmodSync(path, 0o755)
  }

  /** What others can do to it, in the copy of a cache. */
  const WAYS: readonly (readonly [string, (path: string) => void, RegExp | string])[] = [
    ['of another user', (path) => chownSync(path, OTHER, OTHER), `belongs to another user (uid ${OTHER})`],
    ['that all may write', (path) => chmodSync(path, 0o777), 'can be written by everybody (mode 777)'],
    ['that a group may write', (path) => chmodSync(path, 0o775), 'can be written by the group 0 (mode 775)'],
    ['in a folder of another user', (path) => chownSync(dirname(path), OTHER, OTHER), 'belongs to another user'],
    ['in a folder that all may write', (path) => chmodSync(dirname(path), 0o777), 'can be written by everybody'],
    ['in a folder that a group may write', (path) => chmodSync(dirname(path), 0o770), 'written by the group 0'],
    ['in a cache of another user', (path) => chownSync(dirname(dirname(path)), OTHER, OTHER), 'another user'],
    ['below a folder of another user', (path) => chownSync(join(path, '../../..'), OTHER, OTHER), 'another user'],
    [
      'below a folder that all may write',
      (path) => chmodSync(join(path, '../../..'), 0o777),
      'by everybody (mode 777)',
    ],
    [
      "behind another user's symbolic link",
      (path) => {
        renameSync(path, `${path}.own`)
        symlinkSync(`${path}.own`, path)
        lchownSync(path, OTHER, OTHER)
      },
      'belongs to another user',
    ],
    [
      "in a folder behind another user's symbolic link",
      (path) => {
        renameSync(dirname(path), at(`moved-${name}`))
        symlinkSync(at(`moved-${name}`), dirname(path))
        lchownSync(dirname(path), OTHER, OTHER)
      },
      /the symbolic link \S+ belongs to another user/,
    ],
    [
      'with a list of hashes of another user',
      (path) => chownSync(join(dirname(path), 'SHA256SUMS'), OTHER, OTHER),
      'belongs to another user',
    ],
  ]
  rootTest.each(WAYS)('%s is named and not used (needs root)', (_, change, why) => {
    const { path, cli } = cacheWith(name)
    place(path)
    change(path)
    const { code, stdout, stderr } = cli(...args())
    expect({ code, stdout, used: isUsed() }).toEqual({ code: 1, stdout: '', used: false })
    expect(stderr).toMatch(/: is not used: .*\nhint: remove it, .*XDG_CACHE_HOME/)
    expect(stderr).toMatch(typeof why === 'string' ? new RegExp(why.replaceAll(/[()]/g, '\\$&')) : why)
  })

  linuxTest('that is planted would be used', () => {
    const { path, cli } = cacheWith(name)
    place(path)
    writeSums(dirname(path))
    const { stdout } = cli(...args())
    if (name === 'libggml2perfetto-nvtx.so') expect(stdout).toBe(`${path}\n`)
    else expect(isUsed()).toBe(true)
    rmSync(at('used'), { force: true })
  })

  const rebuildTest = name === 'peaks' ? linuxTest : inLong(linuxTest) // the others take longer to build
  rebuildTest('that is not as it was built is built anew', () => {
    const { path, cli } = cacheWith(name)
    const built = readFileSync(path)
    place(path)
    const { code, stderr } = cli(...args())
    expect([code, isUsed()]).toEqual([0, false])
    expect(stderr).toMatch(/^building the .* with cc, once\n/)
    expect(readFileSync(path).equals(built)).toBe(true)
    expect(cli(...args()).stderr).not.toContain('building')
  })
})

describe('what was measured', () => {
  /** As the files are named: see lib/node/peaks.ts and kernels.ts. */
  const keyOf = (...parts: readonly (string | number)[]) =>
    createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 16)
  const here = [hostname(), cpus()[0]!.model.trim(), availableParallelism()] as const
  const NAMES = { peaks: `peaks-${keyOf(...here)}.json`, kernels: `kernels-${keyOf(...here, '1.2')}.json` }
  const CHANGES: readonly (readonly [string, (path: string) => void])[] = [
    ['of another user', (path) => chownSync(path, OTHER, OTHER)],
    ['that others may write', (path) => chmodSync(path, 0o666)],
    ['in a folder of another user', (path) => chownSync(dirname(path), OTHER, OTHER)],
  ]
  const refused = (path: string) => expect.stringMatching(new RegExp(`${path}: is not used: .*\\nhint: remove it`))

  rootTest.each(CHANGES)('peaks %s are named and not used (needs root)', (_, change) => {
    const { cache, cli } = cacheWith('peaks')
    const path = join(cache, KEPT, NAMES.peaks)
    const bandwidths = () => {
      const { code, stdout, stderr } = cli('stats', '--json', 'own.ggtrace')
      const { rooflines } = JSON.parse(stdout) as Analysis
      return { code, stderr, peak: rooflines.find(({ scope }) => scope === 'phase')!.peak_bytes_per_s }
    }
    expect(bandwidths()).toEqual({ code: 0, stderr: '', peak: 1e10 })
    change(path)
    expect(bandwidths()).toEqual({ code: 0, stderr: refused(path), peak: null })
    expect(cli('what-if', 'own.ggtrace', '--threads', '2').stderr).toEqual(refused(path))
    expect(cli('peaks')).toMatchObject({ code: 1, stdout: '', stderr: refused(path) })
  })

  rootTest.each(CHANGES)('times of kernels %s are named and not used (needs root)', (_, change) => {
    const { cache, cli } = cacheWith('peaks')
    const path = join(cache, KEPT, NAMES.kernels)
    writeFileSync(path, '{}', { mode: 0o600 })
    expect(cli('what-if', 'own.ggtrace', '--type', 'q8_0').stderr).toBe('')
    change(path)
    expect(cli('what-if', 'own.ggtrace', '--type', 'q8_0').stderr).toEqual(refused(path))
  })

  linuxTest('is stored for this user only', () => {
    for (const name of ['', ...readdirSync(at(`cache/${KEPT}`), { recursive: true })]) {
      const stats = statSync(at(join('cache', KEPT, `${name}`)))
      const isProgram = /(^|\/)(peaks|.*\.so)$/.test(`${name}`)
      const mode = stats.isDirectory() ? '700' : isProgram ? '755' : '600'
      expect([name, (stats.mode & 0o777).toString(8)]).toEqual([name, mode])
    }
  })
})

describe('doctor', () => {
  const env = () => ({
    PATH: '/usr/bin:/bin',
    HOME: at('home'),
    XDG_CACHE_HOME: at('home/.cache'),
    HF_HOME: '',
    LLAMA_CACHE: '',
  })
  const doctor = (...args: string[]) => run(['doctor', ...args], { cwd: at('place'), env: env() })
  beforeAll(() => {
    mkdirSync(at('place/build/bin'), { recursive: true })
    mkdirSync(at('home'))
    compile(
      'place/build/bin/llama-bench',
      '#include "stand-in.h"\nint main(void) { return llama_decode(NULL, (struct llama_batch) {0}); }',
      `-L${at('.')}`,
      '-l:libllama.so',
      `-Wl,-rpath,${at('.')}`,
    )
  })

  rootTest("another user's program and model, where they usually are, are named and not used (needs root)", () => {
    const bench = at('place/build/bin/llama-bench')
    chownSync(bench, OTHER, OTHER)
    expect(doctor()).toMatchObject({ code: 1, stderr: named(bench) })
    expect(doctor(bench).stderr).toContain('no model (*.gguf)')
    const model = at('place/model.gguf')
    writeFileSync(model, 'x')
    chownSync(model, OTHER, OTHER)
    expect(doctor(bench).stderr).toEqual(named(model))
  })
})

describe('the temporary folder', () => {
  setprivTest("another user's is named and not used (needs root)", () => {
    mkdirSync(at('foreign'))
    chmodSync(at('.'), 0o755)
    chmodSync(at('foreign'), 0o755)
    chownSync(at('foreign'), OTHER, OTHER)
    const other = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    const args = ['record', '-o', 'run.ggtrace', ...other, './caller']
    expect(run(args, { env: { TMPDIR: at('foreign') } })).toMatchObject({ code: 1, stderr: named(at('foreign')) })
    expect(readdirSync(at('foreign'))).toEqual([])
  })
})

describe('libraries that a log names', () => {
  rootTest("another user's are named and not loaded (needs root)", () => {
    mkdirSync(at('libraries'))
    const library = at('libraries/libggml-base.so')
    cpSync(at('planted.so'), library)
    chownSync(library, OTHER, OTHER)
    const { code, stdout, stderr } = run(['peaks', 'own.ggtrace', '--types', 'q8_0'])
    expect([code, stdout, stderr, isUsed()]).toEqual([1, '', named(library), false])
    expect(stderr).toContain(`hint: --ggml ${at('libraries')} if you trust`)
  })
})
