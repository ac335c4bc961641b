import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, eventsOf, Names } from '../../lib/index.ts'
import { NO_PAGE, UNKNOWN_PAGE } from '../../lib/model/page-events.ts'
import { inputOf } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import { ensureLlama, hasLlama, LIB } from '../llama/testbed.ts'
import { buildRecorder, RECORDER } from '../native/recording.ts'
import { expectedOf, type Found } from './expected.ts'
import { findKernel, runGuest } from './guest.ts'

/** The recorder on a machine with two NUMA nodes, against what the program itself finds of its pages and of who touches them. */

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const kernel = hasLlama() ? findKernel() : undefined
const guest = kernel === undefined ? describe.skip : describe
const CPU = 'libggml-cpu-x64.so'

guest('two NUMA nodes (needs qemu-system-x86_64, and a kernel of Debian)', () => {
  let folder = ''
  let files = new Map<string, Buffer>()

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-numa-'))
    await ensureLlama()
    buildRecorder()
    const [init, host] = [join(folder, 'init'), join(folder, 'host')]
    cc('-O2', '-static', pathOf('init.c'), '-o', init)
    const linked = ['-L', LIB, `-l:${CPU}`, '-l:libggml-base.so']
    cc('-O2', pathOf('host.c'), ...linked, '-o', host)
    const record = (name: string) =>
      `/out/${name}.json LD_LIBRARY_PATH=/lib LD_PRELOAD=/lib/libggml2perfetto.so GGML2PERFETTO_OUT=/out/${name}.ggtrace /bin/host 4`
    const run = await runGuest({
      ...{ kernel: kernel!, init, folder, programs: [host] },
      libraries: [join(LIB, 'libggml-base.so'), join(LIB, CPU), RECORDER],
      runs: [record('plain'), `${record('distribute')} distribute`],
    })
    files = run.files
    expect(run.console).toMatch(/RUN \/out\/plain.json: 0[\s\S]*RUN \/out\/distribute.json: 0/)
  }, 400_000)

  afterAll(() => rmSync(folder, { recursive: true }))

  const foundIn = (name: string) => JSON.parse(files.get(`${name}.json`)!.toString()) as Found
  const analysisOf = async (name: string): Promise<Analysis> => {
    const path = join(folder, `${name}.ggtrace`)
    writeFileSync(path, files.get(`${name}.ggtrace`)!)
    return analyze(inputOf(path))
  }

  test.each(['plain', 'distribute'])('%s: the node of each page, at the first graph and at the end', async (name) => {
    const { nodes, address } = foundIn(name)
    const names = new Names()
    const looks: [string, number[]][] = []
    for await (const batch of eventsOf({ name: 'log', source: files.get(`${name}.ggtrace`)! }, names))
      for (const event of batch) {
        if (event.kind !== 'pages' || event.address !== address) continue
        const pages: number[] = []
        for (let i = 0; i < event.runs.length; i += 2)
          pages.push(...new Array<number>(event.runs[i]!).fill(event.runs[i + 1]!))
        looks.push([event.moment, pages])
        expect(names.text(event.policy)).toBe('bind:0, bind:1, interleave:0-1, default')
      }
    expect(looks.map(([moment]) => moment)).toEqual(['first', 'last'])
    for (const [, pages] of looks) {
      expect(pages.slice(0, nodes.length)).toEqual(nodes)
      // The end of the buffer was never used.
      expect(new Set(pages.slice(nodes.length))).toEqual(new Set([NO_PAGE]))
      expect(pages).not.toContain(UNKNOWN_PAGE)
    }
  })

  test('local reads of each worker are those that faults of its pages count', async () => {
    const found = foundIn('distribute')
    expect(found.is_numa).toBe(1)
    const { numa } = await analysisOf('distribute')
    const { tensors, shares, share } = expectedOf(found)
    expect(numa!.tensors.map(({ tensor, by_node }) => [tensor, by_node]).sort()).toEqual(tensors)
    expect(numa!.workers.map(({ worker }) => worker)).toEqual([0, 1, 2, 3])
    expect(numa!.workers.map(({ local_share }) => local_share)).toEqual(shares)
    expect(numa!.local_share).toBeCloseTo(share, 12)
    expect(numa!.estimated_share).toBe(0)
    expect(numa!.mode).toBe('distribute')
  })

  test('without --numa: the tensors lie where they are bound, and no mode is set', async () => {
    const { numa } = await analysisOf('plain')
    expect(numa!.mode).toBeNull()
    expect(numa!.tensors.map(({ tensor, by_node }) => [tensor, by_node]).sort()).toEqual(
      expectedOf(foundIn('plain')).tensors,
    )
  })
})
