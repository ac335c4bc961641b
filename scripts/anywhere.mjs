/**
 * Runs the tests that start programs in surroundings that a contributor's machine may have, each in a copy of the checkout, and prints a table:
 *   node scripts/anywhere.mjs [--only NAME,…] [--suites PATH,…] [--keep]
 * Ends with 1 if a test failed anywhere. It takes some minutes for each surrounding and is no part of CI: run it when a test or the recorder
 * begins to depend on the user, the folder, the environment or the locale. `--keep` leaves the copies, and Jest's output in each (jest.log).
 * `npm test` must have run in the checkout once: the copies share its node_modules, dist and vendor.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SUITES = ['native', 'cli', 'node', 'gpu', 'llama', 'library', 'mcp', 'sched', 'rpc', 'server'].map(
  (name) => `test/${name}`,
)
const SECONDS_MAX = 3600
/** nobody */
const USER = '65534'

const isRoot = process.getuid?.() === 0
const canRun = (...command) => spawnSync(command[0], command.slice(1), { stdio: 'ignore' }).status === 0

/** An environment of 200 KB, without a variable above 100 KB: the kernel allows 128 KB for each. */
const large = () => ({
  LARGE_1: 'x'.repeat(90_000),
  LARGE_2: 'y'.repeat(90_000),
  ...Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`SMALL_${i}`, `${i}`.padEnd(90, '=')])),
})

/** Names of programs of the packages that .ci/run installs, and of what these packages need. */
const EXTRAS =
  /^(bpftrace.*|valgrind.*|vgdb|.*g\+\+.*|.*c\+\+.*|make|gmake|clang.*|aarch64-.*|qemu-.*|perf.*|trace-cmd|chromium.*|openssl|xdg-.*|python.*|musl-.*)$/
/** Folders of those packages that tests look into. */
const EXTRA_FOLDERS = [
  '/usr/share/vulkan/icd.d',
  '/usr/aarch64-linux-gnu',
  '/usr/lib/chromium',
  '/usr/lib/musl',
  '/usr/lib/linux-tools',
]

/** A folder of links to all programs of PATH but those of .ci/run. */
function pathWithoutExtras(folder) {
  mkdirSync(folder)
  const folders = (process.env.PATH ?? '').split(':').filter((name) => existsSync(name))
  for (const from of folders.reverse()) {
    for (const name of readdirSync(from)) {
      rmSync(join(folder, name), { force: true }) // of a folder that comes later in PATH
      if (!EXTRAS.test(name)) symlinkSync(realOf(join(from, name)), join(folder, name))
    }
  }
  return folder
}

/** Programs that look at their name, such as those of busybox, keep it. */
const realOf = (path) =>
  existsSync(path) && realpathSync(dirname(path)) !== dirname(path)
    ? join(realpathSync(dirname(path)), path.slice(dirname(path).length + 1))
    : path

/**
 * Of each surrounding, as far as it is not the usual one: the name of the copy's folder, whose the copy is, the environment (what is added, or all
 * of it) by a folder for its files, a command that becomes the tests, and why it is not available here.
 */
const SURROUNDINGS = {
  user: {
    before: ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'],
    owner: USER,
    env: ({ folder }) => ({ HOME: folder, USER: 'nobody', LOGNAME: 'nobody' }),
    missing: () => (isRoot ? undefined : 'needs root'),
  },
  folder: { name: 'check out ü' },
  'one-variable': { isWhole: true, env: () => ({ PATH: process.env.PATH }) },
  'large-environment': { env: large },
  'one-cpu': { before: ['taskset', '-c', '0'] },
  locale: {
    env: ({ folder }) => {
      const locale = join(folder, 'de_DE.UTF-8')
      return {
        TZ: 'Asia/Kolkata',
        LANG: 'de_DE.UTF-8',
        ...(canRun('localedef', '-i', 'de_DE', '-f', 'UTF-8', locale) ? { LOCPATH: folder } : {}),
      }
    },
  },
  umask: { before: ['sh', '-c', 'umask 077; exec "$@"', 'sh'] },
  tmpdir: {
    env: ({ folder }) => {
      const temporary = join(folder, 'temporary files')
      mkdirSync(temporary)
      return { TMPDIR: temporary }
    },
  },
  malloc: { env: () => ({ MALLOC_PERTURB_: '165' }) },
  'no-extras': {
    env: ({ folder }) => ({ PATH: pathWithoutExtras(join(folder, 'programs')) }),
    before:
      isRoot && canRun('unshare', '-m', 'true')
        ? [
            'unshare',
            '-m',
            'sh',
            '-c',
            `for f in ${EXTRA_FOLDERS.join(' ')}; do [ ! -d $f ] || mount -t tmpfs none $f; done; exec "$@"`,
            'sh',
          ]
        : [],
  },
}

/** Copies the checkout with what is not committed; folders that nobody changes are hard links where that is possible. */
function copyTo(folder, owner) {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const name of listed.split('\0'))
    if (name && existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(folder, name), { preserveTimestamps: true })
  for (const name of ['node_modules', 'dist', 'vendor']) {
    const [from, to] = [join(ROOT, name), join(folder, name)]
    if (!canRun('cp', '-al', from, to)) execFileSync('cp', ['-a', from, to])
  }
  rmSync(join(folder, 'node_modules/.cache'), { recursive: true, force: true })
  if (owner === undefined) return
  // Files may be links to those of the checkout, and stay its user's.
  execFileSync('find', [
    folder,
    '(',
    '-type',
    'd',
    '-o',
    '-links',
    '1',
    ')',
    '-exec',
    'chown',
    '-h',
    `${owner}:${owner}`,
    '{}',
    '+',
  ])
}

/** What Jest printed in the end. Its report in JSON is missing where an error refers to itself. undefined: it did not come that far. */
function countsOf(log) {
  const text = readFileSync(log, 'utf8')
  const summary = (title) => new RegExp(`^${title}: +(.*) total$`, 'm').exec(text)?.[1]
  const [suites, tests] = [summary('Test Suites'), summary('Tests')]
  if (suites === undefined || tests === undefined) return undefined
  const count = (name) => Number(new RegExp(`(\\d+) ${name}`).exec(tests)?.[1] ?? 0)
  const failures = new Set()
  let file = ''
  for (const line of text.split('\n')) {
    file = /^FAIL (\S+)/.exec(line)?.[1] ?? file
    const [, title] = /^ {2}● (.*)/.exec(line) ?? []
    if (title) failures.add(`${file}: ${title}`)
  }
  const total = Number(/(\d+)$/.exec(suites)?.[1])
  return {
    suites: total,
    passed: count('passed'),
    skipped: count('skipped'),
    failed: count('failed'),
    failures: [...failures],
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Runs a command in a group of processes of its own, of which nothing is left when it ends, at a signal, or after {@link SECONDS_MAX}. */
async function runAlone([program, ...args], options) {
  const child = spawn(program, args, { ...options, detached: true })
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      // None of the group runs any more.
    }
  }
  let signal
  const onSignal = (name) => {
    signal = name
    end()
  }
  const timer = setTimeout(end, SECONDS_MAX * 1000)
  for (const name of SIGNALS) process.on(name, onSignal)
  const [status] = await once(child, 'exit')
  for (const name of SIGNALS) process.off(name, onSignal)
  clearTimeout(timer)
  end()
  if (signal) throw new Error(`ended by ${signal}`)
  return status
}

async function runIn(name, suites, keep) {
  const {
    name: last = 'checkout',
    before = [],
    env = () => ({}),
    isWhole = false,
    owner,
    missing = () => undefined,
  } = SURROUNDINGS[name]
  const why = missing()
  if (why) return { name, why }
  const folder = mkdtempSync(join(tmpdir(), 'anywhere-'))
  try {
    execFileSync('chmod', ['755', folder])
    const copy = join(folder, last)
    mkdirSync(copy)
    copyTo(copy, owner)
    const { LC_ALL: _, ...own } = process.env
    const place = join(folder, 'own')
    mkdirSync(place)
    const added = env({ folder: place })
    if (owner !== undefined) execFileSync('chown', ['-R', `${owner}:${owner}`, place])
    const jest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
      .scripts.jest.split(' ')
      .slice(1)
    const command = [...before, process.execPath, ...jest, ...suites]
    const path = join(copy, 'jest.log')
    const log = openSync(path, 'w')
    const start = Date.now()
    const status = await runAlone(command, {
      cwd: copy,
      env: isWhole ? added : { ...own, ...added },
      stdio: ['ignore', log, log],
    })
    const counts = countsOf(path) ?? {
      suites: 0,
      passed: 0,
      skipped: 0,
      failed: 1,
      failures: [`no report: status ${status}, ${path}`],
    }
    return { name, ...counts, seconds: Math.round((Date.now() - start) / 1000) }
  } finally {
    if (!keep) rmSync(folder, { recursive: true, force: true })
  }
}

const show = (cells) =>
  console.log(cells.map((cell, i) => (i ? `${cell}`.padStart(8) : `${cell}`.padEnd(18))).join(' '))

const { values } = parseArgs({
  options: { only: { type: 'string' }, suites: { type: 'string' }, keep: { type: 'boolean' } },
})
const names = values.only?.split(',') ?? Object.keys(SURROUNDINGS)
const unknown = names.filter((name) => !(name in SURROUNDINGS))
if (unknown.length) {
  console.error(`anywhere: no surrounding ${unknown.join(', ')}; there are ${Object.keys(SURROUNDINGS).join(', ')}`)
  process.exit(2)
}

show(['surrounding', 'suites', 'passed', 'skipped', 'failed', 'seconds'])
const failures = []
for (const name of names) {
  const row = await runIn(name, values.suites?.split(',') ?? SUITES, values.keep)
  if (row.why) show([name, row.why])
  else show([name, row.suites, row.passed, row.skipped, row.failed, row.seconds])
  failures.push(...(row.failures ?? []).map((failure) => `${name}: ${failure}`))
}
if (failures.length) console.log(`\nfailed:\n${failures.join('\n')}`)
process.exitCode = failures.length ? 1 : 0
