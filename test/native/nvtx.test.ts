import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import { hasLlama, model } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import {
  buildRecorder,
  NANO,
  newLog,
  RECORDER,
  type Recording,
  readLog,
  recordHosts,
  useRecorder,
} from './recording.ts'

/** NVTX, without any tool of NVIDIA's: what programs announce, and what we announce of llama.cpp. */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const BUILD = join(NATIVE, 'build/nvtx-listener')
const LISTENER = join(dirname(RECORDER), 'libggml2perfetto-nvtx.so')
const canBuild =
  process.platform === 'linux' &&
  ['cc', 'make'].every((tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0)

/** Where a CUDA toolkit has its headers. */
const toolkits = ['/usr/local', '/opt'].flatMap((folder) =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.startsWith('cuda'))
    .map((name) => join(folder, name)),
)
const INCLUDE = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], ...toolkits.sort().reverse(), '/usr']
  .map((home) => home && join(home, 'include'))
  .find((folder) => folder && existsSync(join(folder, 'nvtx3/nvToolsExt.h')) && existsSync(join(folder, 'cuda.h')))

const folder = canBuild ? mkdtempSync(join(tmpdir(), 'ggml2perfetto-nvtx-')) : ''
afterAll(() => rmSync(folder || '/nonexistent', { recursive: true, force: true }))

const ANNOUNCED = `
  select coalesce(p.name, '') as domain, rtrim(t.name, '0123456789') as row, s.name, s.depth,
    (select group_concat(substr(a.key, 7) || '=' || coalesce(a.string_value, a.int_value, a.real_value), ' ')
     from args a where a.arg_set_id = s.arg_set_id and a.key not in ('debug.tid', 'debug.domain')) as args
  from slice s join track t on t.id = s.track_id left join track p on p.id = t.parent_id
  where s.category = 'nvtx' order by s.ts, s.depth`

async function sql(log: string, ...queries: string[]) {
  const trace = await openTrace(convert(inputOf(log), { detail: 'full' }))
  try {
    expect(trace.problems()).toEqual([])
    return queries.map((query) => trace.query(query).rows)
  } finally {
    trace.close()
  }
}

const [MAIN, READER] = ['main thread ', 'reader ']
const payload = (value: string, type: string) =>
  ['default domain', MAIN, 'payload', 0, `payload=${value} payload_type=${type}`] as const

/** A row with its domain and its thread, whether it is in the group of its domain or a row of the run. */
function placed<T>([group, row, ...cells]: readonly T[]): (T | string)[] {
  const [, thread, domain = 'default domain'] = /^(.* )\d+: NVTX(?: (.*))?$/.exec(`${row}`) ?? []
  return thread === undefined ? [group!, row!, ...cells] : [domain, thread, ...cells]
}

/** What nvtx-program.c announces, in order. */
const EXPECTED = [
  [
    'NVTX',
    'Names',
    'cudaStream 0x7f0000000001: copy stream',
    0,
    'object=cudaStream handle=0x7f0000000001 name=copy stream',
  ],
  ['NVTX', 'Names', 'cudaDevice 0: first GPU', 0, 'object=cudaDevice handle=0 name=first GPU'],
  ['NVTX', 'Names', 'CUcontext 0x10: context', 0, 'object=CUcontext handle=0x10 name=context'],
  ['default domain', MAIN, 'outer', 0, null],
  ['default domain', MAIN, 'inner', 1, 'category=default seven color=#336699 payload=42 payload_type=i32'],
  ['default domain', MAIN, 'breit ä€🚀', 2, null],
  ['io', MAIN, 'registered', 0, 'category=io seven'],
  ['io', MAIN, 'русский', 1, 'category=io seven'],
  ['io', MAIN, 'of the module', 0, null],
  ['default domain', MAIN, 'a mark', 0, null],
  ['default domain', MAIN, 'a wide mark', 0, null],
  payload('18446744073709551615', 'u64'),
  payload('9223372036854775807', 'u64'),
  payload('-9223372036854775808', 'i64'),
  payload('0.1', 'f64'),
  payload('4294967295', 'u32'),
  payload('-7', 'i32'),
  payload('0.5', 'f32'),
  ['default domain', MAIN, 'payload', 0, 'payload_type=unknown'],
  ['io', 'Ranges', 'across threads', 0, 'color=#ff0001 range_id=1 end_tid=*'],
  ['default domain', 'Ranges', 'first', 0, 'range_id=2'],
  ['default domain', 'Ranges (2)', 'second', 0, 'range_id=3'],
  ['default domain', READER, 'on reader', 0, null],
  ['default domain', 'Ranges', 'left open', 0, 'range_id=4 inferred=no end recorded'],
]

const withHeaders = canBuild && INCLUDE ? describe : describe.skip
withHeaders("a program that uses NVIDIA's NVTX headers (needs nvtx3/ of a CUDA toolkit, and cc)", () => {
  const program = join(folder, 'program')

  beforeAll(() => {
    buildRecorder()
    const source = fileURLToPath(new URL('nvtx-program.c', import.meta.url))
    const flags = ['-O1', `-I${INCLUDE}`, source, '-ldl', '-pthread']
    const module = join(folder, 'module.so')
    cc('-DMODULE', '-shared', '-fPIC', ...flags, '-o', module)
    cc(...flags, module, '-o', program)
  })

  const announce = (env: Record<string, string>, ...args: string[]) => {
    const { PATH = '' } = process.env
    const { status, stdout, stderr } = spawnSync(program, args, {
      env: { PATH, ...env },
      cwd: folder,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    // Each domain counts for itself.
    expect(stdout).toBe('0 1 2 0 2 1 0 0\n')
  }

  const expectAll = async (log: string, more: readonly unknown[] = []) => {
    const [found, order, issues] = await sql(
      log,
      ANNOUNCED,
      `select (select end_.ts + end_.dur from slice end_ where end_.name = 'across threads') < on_reader.ts,
         (select ts + dur from slice where name = 'first') <= (select ts + dur from slice where name = 'second')
       from slice on_reader where on_reader.name = 'on reader'`,
      "select name from slice where category = 'issue'",
    )
    const rows = found!
      .map(placed)
      .map((row) => row.map((cell) => (typeof cell === 'string' ? cell.replace(/end_tid=\d+/, 'end_tid=*') : cell)))
    expect(rows).toEqual([...EXPECTED, ...more])
    expect(order).toEqual([[1, 1]])
    expect(issues).toEqual([])
  }

  test('needs nothing but NVTX_INJECTION64_PATH: all of it is in the log, exactly', async () => {
    announce({ NVTX_INJECTION64_PATH: LISTENER })
    const [log] = readdirSync(folder).filter((name) => /^program-\d+\.ggtrace$/.test(name))
    await expectAll(join(folder, log!))
  })

  test('has a log where GGML2PERFETTO_OUT says, or beside it; a child of it writes nothing', async () => {
    const log = join(folder, 'run.ggtrace')
    for (let i = 0; i < 2; i++) announce({ NVTX_INJECTION64_PATH: LISTENER, GGML2PERFETTO_OUT: log }, 'fork')
    const logs = readdirSync(folder).filter((name) => name.startsWith('run.ggtrace'))
    expect(logs).toHaveLength(2)
    const after = [['default domain', MAIN, 'after the child', 0, null]]
    for (const name of logs) await expectAll(join(folder, name), after)
  })

  test('runs as it would where no log can be written', () => {
    const env = { NVTX_INJECTION64_PATH: LISTENER, GGML2PERFETTO_OUT: join(folder, 'nowhere/run.ggtrace') }
    const { status, stdout, stderr } = spawnSync(program, [], { env, encoding: 'utf8' })
    // As without a tool: pushes are not counted.
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${'-2 '.repeat(8).trim()}\n` })
    expect(stderr).toContain('nowhere/run.ggtrace: cannot write: No such file or directory')
  })

  describe('under the recorder', () => {
    const run = (log: string, listener: string) => {
      const recorder = RECORDER
      announce({
        LD_PRELOAD: recorder,
        NVTX_INJECTION64_PATH: listener || recorder,
        GGML2PERFETTO_OUT: log,
      })
    }

    test('it is in the recorder’s log, though ggml is never called', async () => {
      const log = join(folder, 'recorded.ggtrace')
      run(log, '')
      await expectAll(log)
    })

    test('it is there too where the listener was chosen by hand', async () => {
      const log = join(folder, 'by-hand.ggtrace')
      run(log, LISTENER)
      expect(readdirSync(folder).filter((name) => name.startsWith('by-hand'))).toEqual(['by-hand.ggtrace'])
      await expectAll(log)
    })
  })
})

const withCompiler = canBuild ? describe : describe.skip
withCompiler('programs that keep to nothing (needs cc and Linux)', () => {
  inLong(test).each([
    ['plain', '-O2 -g'],
    ['address', '-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all'],
  ])('do no harm, nor have any: %s', async (name, flags) => {
    const build = join(BUILD, name)
    execFileSync('make', ['-s', '-C', NATIVE, `BUILD=${build}`, `CFLAGS=${flags}`, join(build, 'nvtx')])
    const log = join(folder, `hostile-${name}.ggtrace`)
    const { status, stderr } = spawnSync(join(build, 'nvtx'), [log], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const recording = await readLog(log)
    // A range that was never started ends, as it was told.
    expect(recording.issues).toEqual([])
    // Handles that nobody gave out are no messages, and names without a text are none.
    expect(recording.of('nvtx-name')).toEqual([])
    const events = recording.of('nvtx')
    const said = (text: string) => events.filter(({ message }) => recording.text(message) === text).length
    const attributes = events.filter(({ what, message }) => what === 'mark' && recording.text(message) === 'whole')
    expect(attributes).toHaveLength(6 * (64 - 48 + 1))
    for (const { color, category, payload } of attributes) {
      expect({ color, category: recording.text(category), payload }).toEqual({
        color: 0xff010203,
        category: '5',
        payload: { type: 'u64', value: 77 },
      })
    }
    expect(said('of the child') + said('after the end')).toBe(0)
    expect(said('the last one')).toBe(1)
    expect(said('x\ufffd\ufffd\ufffd')).toBe(1)
    expect(said('y'.repeat(3072))).toBe(1)
    expect(events.filter(({ what }) => what === 'start')).toHaveLength(8 * 500)
    expect(new Set(events.map(({ domain }) => domain)).size).toBe(51)
    const depths = new Map<string, number>()
    let stray = 0
    for (const { what, tid, domain } of events) {
      const key = `${tid} ${domain}`
      if (what === 'push') depths.set(key, (depths.get(key) ?? 0) + 1)
      if (what === 'pop') depths.set(key, (depths.get(key) ?? 0) - 1)
      if ((depths.get(key) ?? 0) < 0) stray++
    }
    expect(stray).toBe(0)
    expect([...depths.values()].filter((depth) => depth !== 0)).toEqual([])
  })
})

const llama = hasLlama() ? describe : describe.skip
llama('llama.cpp, announced as NVTX ranges (needs linux-x64 and cc)', () => {
  useRecorder()

  const announced = async (emit: string, threads = 1) => {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const steps = ['load', 0, path, 'open', 0, threads, 'decode', 0, 6, 'close', 0, 'exit', 0]
    await recordHosts(steps, { log, env: { NVTX_INJECTION64_PATH: RECORDER, GGML2PERFETTO_NVTX_EMIT: emit } })
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    return { log, recording }
  }

  /** Ranges of a category in the log, whose payload is an index. */
  const rangesOf = ({ of, text }: Recording, category: string) => {
    const ranges = []
    const open = new Map<
      number,
      { index: number | undefined; name: string; tid: number; startNs: number; is: boolean }[]
    >()
    for (const { what, tid, atNs, message, payload, category: id, domain } of of('nvtx')) {
      if (text(domain) !== 'llama.cpp') continue
      const stack = open.get(tid) ?? []
      open.set(tid, stack)
      const is = text(id) === category
      if (what === 'push') stack.push({ index: payload?.value as number, name: text(message), tid, startNs: atNs, is })
      const range = what === 'pop' ? stack.pop() : undefined
      if (range?.is) ranges.push({ ...range, endNs: atNs })
    }
    return ranges
  }

  test('each token once on both sides, in a range that holds no other', async () => {
    const { log, recording } = await announced('tokens')
    const tokens = recording.of('token')
    const ranges = rangesOf(recording, 'tokens')
    expect(tokens.length).toBeGreaterThanOrEqual(6)
    expect(ranges.map(({ index = -1, name, tid }) => [index, name, tid])).toEqual(
      tokens.map(({ call, phase, tid }) => [call, phase, tid]),
    )
    const apart = tokens.flatMap(({ startNs, endNs }, i) => [startNs - ranges[i]!.startNs, ranges[i]!.endNs - endNs])
    expect(Math.min(...apart)).toBeGreaterThanOrEqual(0)
    const times = ranges.flatMap(({ startNs, endNs }) => [startNs, endNs])
    expect(times).toEqual([...times].sort((a, b) => a - b))
    const [rows] = await sql(
      log,
      `select (select count(*) from slice where category = 'token'), (select count(*) from slice where category = 'nvtx')`,
    )
    expect(rows).toEqual([[tokens.length, tokens.length]])
    expect(recording.of('input')[0]!.attributes).toMatchObject({ command: expect.any(String) })
  })

  test('phases, graphs and operators, nested as they ran', async () => {
    const { recording } = await announced('phases,tokens,graphs,operators')
    const [tokens, graphs, operators] = ['tokens', 'graphs', 'operators'].map((kind) => rangesOf(recording, kind))
    expect(tokens).toHaveLength(recording.of('token').length)
    expect(graphs!.map(({ name, index }) => [name, index])).toEqual(
      recording.of('graph').map(({ backend, split }) => [recording.text(backend), split]),
    )
    // Those that are fused to another have no range of their own.
    const own = recording.of('operator').filter(({ fusedTo }) => fusedTo === undefined)
    expect(operators).toHaveLength(own.length)
    operators!.forEach(({ name, startNs, endNs }, i) => {
      const { tensor, startNs: at } = own[i]!
      const { op, name: full } = recording.tensor(tensor)
      expect(name).toBe(`${recording.text(full).replace(/-\d+$/, '')} ${recording.text(op)}`)
      expect([at <= endNs, startNs <= endNs]).toEqual([true, true])
    })
    for (const [outer, inner] of [
      [tokens!, graphs!],
      [graphs!, operators!],
    ] as const) {
      const outside = inner.filter(
        (range) => !outer.some(({ startNs, endNs }) => startNs <= range.startNs && range.endNs <= endNs),
      )
      expect(outside).toEqual([])
    }
    const phases = recording.of('nvtx').filter(({ what }) => what === 'start')
    expect(phases.length).toBeGreaterThan(0)
    expect(phases.map(({ payload }) => payload?.value)).toEqual(phases.map((_, i) => i))
    expect(recording.of('nvtx').filter(({ what }) => what === 'end')).toHaveLength(phases.length)
  })

  test('nothing is announced where no tool is to be had; the log says so, and the run goes on', async () => {
    const { path } = await model(NANO)
    const env = { NVTX_INJECTION64_PATH: '/nowhere/tool.so', GGML2PERFETTO_NVTX_EMIT: 'tokens' }
    const { log } = await recordHosts(['load', 0, path, 'open', 0, 1, 'decode', 0, 1, 'close', 0, 'exit', 0], { env })
    const recording = await readLog(log)
    expect(recording.of('nvtx')).toEqual([])
    const attributes = Object.assign(
      {},
      ...[...recording.of('input'), ...recording.of('facts')].map((event) => event.attributes),
    )
    expect(attributes['note']).toMatch(/nothing was announced as NVTX ranges.*\/nowhere\/tool\.so/)
  })
})
