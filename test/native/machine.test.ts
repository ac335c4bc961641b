import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { analyze, convert } from '../../lib/index.ts'
import { cpusOf } from '../../lib/model/topology.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { hasLlama, model, type RunOptions, run } from '../llama/testbed.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { CPUS, hasTaskset, ON_CPU } from '../machine.ts'
import { makeSys } from '../other-machine.ts'
import { inFolder, NANO_MOE, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** What the recorder writes of the machine, and of the threads that compute. */

/** Keys of facts in docs/reference/ggtrace-format.md, as patterns: `env.<name>` is any variable. */
function documentedFacts(): RegExp[] {
  const text = readFileSync(fileURLToPath(new URL('../../docs/reference/ggtrace-format.md', import.meta.url)), 'utf8')
  const [, table = ''] = /\| key of a FACT \| value \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(text) ?? []
  const keys = table.split('\n').flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)])
  return keys.map(([, key]) => new RegExp(`^${key!.replaceAll('.', '\\.').replace(/<\w+>/g, '.+')}$`))
}

const llama = hasLlama() ? describe : describe.skip

const ONLINE = '/sys/devices/system/node/online'
const readOnline = () => (existsSync(ONLINE) ? readFileSync(ONLINE, 'utf8').trim() : '')
const factIn = (facts: readonly { readonly attributes: Readonly<Record<string, string | number>> }[], key: string) =>
  facts.map(({ attributes }) => attributes[key]).find((value) => value !== undefined)

llama('machine and threads of a run (needs linux-x64 and cc)', () => {
  useRecorder()

  async function record(args: readonly (string | number)[], options: RunOptions = {}) {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { GGML2PERFETTO_OUT: log, ...options.env }
    const words = ['--prompt', '2', '--decode', '5', ...args.map(String)]
    const result = await run((await model(NANO_MOE)).path, words, { ...options, preload: RECORDER, env })
    expect([result.code, result.stderr]).toEqual([0, ''])
    return log
  }

  test('another machine: packages, nodes, cores, siblings, kinds, clocks, caches', async () => {
    const fast = { maxKhz: 5_100_000, limitKhz: 5_100_000, governor: 'performance', capacity: 1024 }
    const slow = { maxKhz: 3_800_000, limitKhz: 2_000_000, governor: 'powersave', capacity: 600, kind: 'atom' } as const
    const cores = [
      ...[0, 1, 2, 3].map((i) => ({ cpus: [2 * i, 2 * i + 1], ...fast, kind: 'core' as const })),
      ...[8, 9, 10, 11].map((cpu) => ({ cpus: [cpu], ...slow, package: 1, node: 1 })),
    ]
    const more = { 'devices/system/cpu/intel_pstate/no_turbo': '1' }
    const sys = makeSys(inFolder('sys-hybrid'), cores, more)
    const log = await record(['--threads', 2], { env: { GGML2PERFETTO_SYS: sys } })
    const { machine, numa } = await analyze(inputOf(log))
    const clocks = { max_hz: 5.1e9, limit_hz: 5.1e9, governors: ['performance'] }
    expect(machine).toEqual({
      ...{ online: '0-11', allowed: expect.any(String), cpuset: machine!.cpuset },
      ...{ packages: 2, nodes: 2, cores: 8, cpus_per_core: 2, boost: false, missing: null },
      kinds: [
        { kind: 'P', cpus: '0-7', cores: 4, capacity: 1024, ...clocks },
        { kind: 'E', cpus: '8-11', cores: 4, capacity: 600, max_hz: 3.8e9, limit_hz: 2e9, governors: ['powersave'] },
      ],
      caches: [{ name: 'L3 32768K', count: 2 }],
    })
    expect(cpusOf(machine!.allowed!)).toEqual(CPUS)
    // Of several nodes, the pages of buffers: those of this machine.
    const { of, text } = await readLog(log)
    const refused = factIn(of('facts'), 'numa.missing')
    const seen = new Set(of('pages').map(({ moment, buffer }) => `${moment} ${text(buffer)}`))
    if (refused === undefined) {
      expect([...seen]).toEqual(expect.arrayContaining(['first CPU', 'last CPU']))
      expect(numa!.tensors.length).toBeGreaterThan(10)
      for (const { by_node, unknown_bytes, size_bytes } of numa!.tensors)
        expect(by_node[0]! + by_node[1]! + unknown_bytes).toBe(size_bytes)
    }
  })

  inLong(test)('of very many CPUs: what is too long is named, and the rest is there', async () => {
    // No two are adjacent: the list of cores does not fit into a fact.
    const cores = Array.from({ length: 500 }, (_, i) => ({ cpus: [i, 500 + i] }))
    const env = { GGML2PERFETTO_SYS: makeSys(inFolder('sys-large'), cores) }
    const { of } = await readLog(await record(['--threads', 1], { env }))
    const { attributes } = of('input')[0]!
    expect(attributes['topology.online']).toBe('0-999')
    expect(attributes['topology.missing']).toContain('topology.cores')
    expect(attributes['topology.cores']).toBeUndefined()
  })

  const oneNode = readOnline() === '0' ? test : test.skip
  oneNode('on one node: nothing of the nodes of pages (needs a machine with one)', async () => {
    const { of } = await readLog(await record([]))
    expect(of('pages')).toEqual([])
    expect(of('affinity').every(({ policy }) => policy === undefined)).toBe(true)
    const facts = [...of('input'), ...of('facts')].flatMap(({ attributes }) => Object.keys(attributes))
    expect(facts.filter((key) => key.startsWith('numa.'))).toEqual([])
  })

  test('variables about threads, without secrets, and no others', async () => {
    const set = {
      ...{ OMP_NUM_THREADS: '2', KMP_BLOCKTIME: '0', GGML_SCHED_DEBUG: '0', CUDA_VISIBLE_DEVICES: '1,0' },
      ...{ LLAMA_API_KEY: 'private', LLAMA_ARG_HF_TOKEN: 'private', LLAMA_ARG_MODEL_URL: 'https://u:private@h/m' },
      ...{ CUDA_HOME: '/private', HF_TOKEN: 'private', OMPX: 'private' },
    }
    const log = await record([], { env: set })
    const { run } = await analyze(inputOf(log))
    const shown = Object.entries(run.variables).filter(([name]) => name in set)
    expect(Object.fromEntries(shown)).toEqual({
      ...{ OMP_NUM_THREADS: '2', KMP_BLOCKTIME: '0', GGML_SCHED_DEBUG: '0', CUDA_VISIBLE_DEVICES: '1,0' },
      ...{ LLAMA_API_KEY: '[redacted]', LLAMA_ARG_HF_TOKEN: '[redacted]' },
      LLAMA_ARG_MODEL_URL: 'https://u:[redacted]@h/m',
    })
    // Blocks of a log are plain bytes.
    expect(readFileSync(log).includes('private')).toBe(false)
    const { of } = await readLog(log)
    const keys = [...of('input'), ...of('facts')].flatMap(({ attributes }) => Object.keys(attributes))
    expect(keys.filter((key) => !documentedFacts().some((pattern) => pattern.test(key)))).toEqual([])
  })

  test("ggml's own pools: their parameters, and one team for all calls", async () => {
    const { threads } = await analyze(inputOf(await record(['--threads', 2, '--threadpool'])))
    expect(threads).toMatchObject({ runtime: 'pool', openmp: null })
    expect(threads!.pools).toEqual([expect.stringMatching(/^threads 2, priority 0, poll \d+, strict 0$/)])
    expect(threads!.teams).toMatchObject({ calls: 6, teams: 1, moved_calls: 0, changed_calls: 0, new_threads: 0 })
    const [team] = threads!.teams!.longest
    expect(team).toMatchObject({ workers: 2, calls: 6 })
  })

  inParts(test).each(someOf(['token', 'graph'], 2))(
    'at the level %s, too: whose threads the workers are',
    async (level) => {
      const { threads } = await analyze(inputOf(await record([], { env: { GGML2PERFETTO_LEVEL: level } })))
      expect(threads).toMatchObject({ runtime: 'pool', openmp: null, teams: null, places: null })
    },
  )

  test('without a pool: new threads for every graph; each call from another thread', async () => {
    const { threads } = await analyze(inputOf(await record(['--threads', 2, '--change-threads'])))
    expect(threads!.pools).toEqual([])
    // The kernel gives numbers of threads again only after very many.
    expect(threads!.teams).toMatchObject({ calls: 6, teams: 6, moved_calls: 5, changed_calls: 5, new_threads: 5 })
    expect(threads!.teams!.start_delay_ns).toBeGreaterThan(0)
  })

  const pinned = hasTaskset ? test : test.skip
  pinned('where each worker ran and might run (needs taskset)', async () => {
    // Two workers on one CPU: each barrier takes a turn of both.
    const log = await record(['--threads', 2, '--decode', 1], { before: ['taskset', ...ON_CPU] })
    const { of, text } = await readLog(log)
    const affinities = of('affinity')
    expect(new Set(affinities.map(({ worker }) => worker))).toEqual(new Set([0, 1]))
    for (const { cpu, allowed, tid } of affinities) {
      expect([cpu, text(allowed)]).toEqual([Number(ON_CPU[1]), ON_CPU[1]])
      expect(tid).toBeGreaterThan(0)
    }
    const { machine, threads } = await analyze(inputOf(log))
    expect(machine!.allowed).toBe(ON_CPU[1])
    const place = { allowed: [{ cpus: ON_CPU[1], share: 1 }], cpus: [{ cpu: Number(ON_CPU[1]), share: 1 }], moves: 0 }
    expect(threads!.places!.workers).toEqual([0, 1].map((worker) => ({ worker, ...place, by_kind: {} })))
    expect(threads!.places!.crowded).toBeNull() // the program may use no other CPU
    const trace = await openTrace(convert(inputOf(log)))
    try {
      const names = trace.query("select name from track where name glob 'worker ? ·*' order by name").rows.flat()
      expect(names).toEqual([0, 1].map((worker) => `worker ${worker} · CPU ${ON_CPU[1]}`))
    } finally {
      trace.close()
    }
  })
})
