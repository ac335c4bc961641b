import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import type { ClocksEvent } from '../../lib/core.ts'
import { convert, type Summary } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { at, names, run, start, useFolder } from '../cli/helpers.ts'
import type { Ask } from '../llama/client.ts'
import { bundledServer, PREPARE_MS, type Server, startServer } from '../llama/server.ts'
import { LIB } from '../llama/testbed.ts'
import { canBpftrace } from '../machine.ts'
import { buildRecorder, RECORDER, readLog } from './recording.ts'
import '../live.ts'

/** `record --attach`: a server that runs already, beside the recorder, which has counted the same calls. */

/** ATTACH_RUNS=20 ATTACH_SECONDS=10: the trial of docs/reference/compatibility.md. */
const RUNS = Number(process.env['ATTACH_RUNS'] ?? 1)
const SECONDS = Number(process.env['ATTACH_SECONDS'] ?? 2)

const real = bundledServer.problem === undefined && canBpftrace() ? describe : describe.skip

const completion = (words: number): Ask => ({
  path: '/completion',
  body: { prompt: 'w1 '.repeat(words), n_predict: 6, temperature: 0, ignore_eos: true, cache_prompt: false },
})

const commandOf = (pid: string) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return '' // it has ended
  }
}

/** The log that a process writes: it has no name yet. */
function spoolOf(pid: number) {
  return readdirSync(`/proc/${pid}/fd`)
    .map((fd) => `/proc/${pid}/fd/${fd}`)
    .find((file) => {
      try {
        return /\.g2p\.\w+\.tmp/.test(readlinkSync(file))
      } catch {
        return false // it was closed
      }
    })
}

useFolder()

real('a server that runs already (needs root, bpftrace, linux-x64, g++)', () => {
  let server: Server
  beforeAll(buildRecorder)
  beforeAll(bundledServer.prepare, PREPARE_MS)
  afterEach(() => server.remove())
  /** Its libraries are in a folder whose name is longer than a text of bpftrace may be. */
  const libraries = () => {
    const far = at('l'.repeat(80))
    if (!existsSync(far)) cpSync(LIB, far, { recursive: true, verbatimSymlinks: true })
    return far
  }
  const serve = async (env = {}, args: readonly (string | number)[] = []) => {
    const far = libraries()
    server = await startServer(bundledServer, {
      model: 'tinyDense',
      args: ['-c', 1024, '-np', 1, '-t', 1, ...args],
      recorder: RECORDER,
      env: { ...env, LD_LIBRARY_PATH: far },
    })
    expect(readFileSync(`/proc/${server.pid}/maps`, 'utf8')).toContain(`${far}/libllama`)
  }
  /** Asks until `isOver`; prompts of 1, 2 … words, so that the calls differ. */
  const load = async (isOver: () => boolean) => {
    const statuses = new Set<number>()
    for (let words = 1; !isOver(); words = (words % 50) + 1) statuses.add((await server.ask(completion(words))).status)
    return [...statuses]
  }
  /** The log that it writes while the server works, and how it ended. */
  const attached = async (args: readonly string[], during: (child: ReturnType<typeof start>) => Promise<void>) => {
    const child = start(['record', '--attach', `${server.pid}`, ...args])
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    let isOver = false
    const ended = once(child, 'close').finally(() => {
      isOver = true
    })
    const [statuses, [code]] = await Promise.all([load(() => isOver), ended, during(child)])
    return { statuses, code, stderr }
  }
  /** bpftrace prints what each CPU has: a server's thread changes its CPU. */
  const sizes = (list: readonly { readonly tokens: number; readonly startNs: number }[]) =>
    list
      .toSorted((a, b) => a.startNs - b.startNs)
      .map(({ tokens }) => tokens)
      .join()
  /** A test that is tried again has other logs. */
  let logs = 0
  const fresh = (name: string) => `${logs++}-${name}`

  test.each(['graph', 'op'])(
    `the calls that the recorder has, ${RUNS} times, level %s; no request fails`,
    async (level) => {
      await serve({ GGML2PERFETTO_LEVEL: level })
      const attempt = fresh(level)
      const runs = Array.from({ length: RUNS }, (_, run) => `${attempt}-${run}`)
      for (const name of runs) {
        const args = ['--for', `${SECONDS}s`, '--level', level, '-o', `${name}.g2p`]
        const { statuses, code, stderr } = await attached(args, async () => undefined)
        expect([name, statuses, code, /^.*(?:error|lost).*$/im.exec(stderr)]).toEqual([name, [200], 0, null])
      }
      expect(await server.stop()).toBe(0)
      const all = await readLog(server.log)
      // Fused ones pass no probe.
      const perCall = all.of('operator').filter(({ fusedTo }) => fusedTo === undefined).length / all.of('token').length
      const counted: string[] = []
      for (const name of runs) {
        const live = await readLog(at(`${name}.g2p`))
        const [calls, graphs, operators] = [
          live.of('token').length,
          live.of('graph').length,
          live.of('operator').length,
        ]
        counted.push(`${name}: ${calls} calls, ${graphs} graphs, ${operators} operators`)
        expect(live.issues).toEqual([])
        // The same calls, one after the other: prompts have other lengths from request to request.
        expect(calls).toBeGreaterThan(20)
        expect(sizes(all.of('token'))).toContain(sizes(live.of('token')))
        // A call at each end may be there in part.
        expect(Math.abs(graphs - calls)).toBeLessThanOrEqual(1)
        expect(level === 'op' ? Math.abs(operators / perCall - calls) : operators).toBeLessThan(2)
      }
      if (RUNS > 1) console.log(counted.join('\n'))
      // Both are on one clock with the threads of the machine.
      const shown = run([`${attempt}-0.g2p`, `${attempt}-0.sched.dat`, '-o', `${attempt}.pftrace`])
      expect([shown.code, /clock|not placed/i.exec(shown.stderr)]).toEqual([0, null])
    },
  )

  test.each(['deleted', 'replaced'])('libraries that were %s since', async (what) => {
    await serve()
    rmSync(libraries(), { recursive: true })
    if (what === 'replaced') libraries()
    const name = fresh(`${what}.g2p`)
    const { code, statuses, stderr } = await attached(
      ['--for', `${SECONDS}s`, '--no-states', '-o', name],
      async () => {},
    )
    expect([code, statuses, /^.*(?:error|lost|not recorded).*$/im.exec(stderr)]).toEqual([0, [200], null])
    const live = await readLog(at(name))
    expect(live.issues).toEqual([])
    expect(live.of('token').length).toBeGreaterThan(20)
    expect(Math.abs(live.of('graph').length - live.of('token').length)).toBeLessThanOrEqual(1)
  })

  test('no calls of another process that uses the same libraries', async () => {
    await serve()
    const args = ['-c', 1024, '-np', 1, '-t', 1]
    const other = await startServer(bundledServer, { model: 'tinyDense', args, env: { LD_LIBRARY_PATH: libraries() } })
    const beside = fresh('beside.g2p')
    const asked = async () => {
      for (let words = 1; !existsSync(at(beside)); words = (words % 50) + 1) await other.ask(completion(words))
    }
    const { code, statuses } = await attached(['--for', `${SECONDS}s`, '--no-states', '-o', beside], asked)
    expect([code, statuses]).toEqual([0, [200]])
    const threads = new Set((await readLog(at(beside))).of('token').map(({ tid }) => tid))
    expect([...threads].map((tid) => [tid, existsSync(`/proc/${server.pid}/task/${tid}`)])).toEqual([
      [expect.any(Number), true],
    ])
    await other.remove()
  })

  test('requests of its log lie where their calls are, within the stated error', async () => {
    const [log, live] = [at(fresh('server.txt')), fresh('live.g2p')]
    await serve({}, ['--log-file', log])
    const { code, statuses, stderr } = await attached(
      ['--for', `${SECONDS}s`, '--no-states', '-o', live],
      async () => {},
    )
    expect([code, statuses]).toEqual([0, [200]])
    expect(stderr).toContain(`requests: ggml2perfetto open ${live} ${log}\n`)
    expect(await server.stop()).toBe(0)

    const relationOf = (first: string) => {
      const { stdout } = run(['info', first, log, '--json'])
      return (JSON.parse(stdout) as Summary[]).find(({ relation }) => relation)!.relation!
    }
    const [found, truth] = [relationOf(live), relationOf(server.log)]
    expect([found.to, found.how]).toEqual(['BOOTTIME', expect.stringMatching(/^inferred from lines of the server at /)])
    const [{ readings }] = (await readLog(server.log)).of('clocks') as [ClocksEvent]
    const now = (clock: string) => readings.find((reading) => reading.clock === clock)!.ns
    const error = BigInt(found.offset_ns) - BigInt(truth.offset_ns) - (now('BOOTTIME') - now('MONOTONIC'))
    expect(found.bound_ns).toBeLessThan(50e6)
    // The recorder's steps precede their lines by up to 0.2 ms.
    expect(Math.abs(Number(error))).toBeLessThanOrEqual(found.bound_ns! + truth.bound_ns! + 200_000)

    const trace = await openTrace(convert([inputOf(at(live)), inputOf(log)]))
    const rows = (category: string) =>
      trace.query(`select ts, ts + dur from slice where category = ${category} order by ts`).rows
    // Those of the log have the server's numbers; calls with sequences have some of their own.
    const [requests, calls] = [rows("'request' and name glob 'task [0-9]*'"), rows("'token'")]
    trace.close()
    expect(requests.length).toBe(readFileSync(log, 'utf8').match(/launch_slot_: .* processing task/g)!.length)
    const outside = calls.filter(([from, to]) => !requests.some(([start, end]) => start! <= from! && to! <= end!))
    expect([calls.length > 20, outside]).toEqual([true, []])
  })

  /** Once the probes are attached, and calls are printed. */
  const thenSignal = (signal: NodeJS.Signals) => async (child: ReturnType<typeof start>) => {
    const begins = () => {
      const spool = spoolOf(child.pid!)
      return spool !== undefined && readFileSync(spool).includes('g2p token')
    }
    while (!begins()) {
      expect(child.exitCode).toBe(null)
      await sleep(100)
    }
    child.kill(signal)
  }
  const tracers = () =>
    readdirSync('/proc').filter(
      (pid) =>
        /^\d+$/.test(pid) && commandOf(pid).includes(`/proc/${server.pid}/root`) && commandOf(pid).includes('bpftrace'),
    )

  test('Ctrl-C ends it with a log; kill -9 leaves nothing behind', async () => {
    await serve()
    const one = fresh('one.g2p')
    const interrupted = await attached(['-o', one], thenSignal('SIGINT'))
    expect([interrupted.code, interrupted.statuses]).toEqual([0, [200]])
    expect((await readLog(at(one))).of('token').length).toBeGreaterThan(0)

    const before = names()
    const killed = await attached(['-o', fresh('two.g2p')], thenSignal('SIGKILL'))
    expect(killed.statuses).toEqual([200])
    for (let tries = 0; tries < 100 && tracers().length > 0; tries++) await sleep(100)
    expect([tracers(), (await server.ask(completion(3))).status]).toEqual([[], 200])
    for (let tries = 0; tries < 100 && names().length > before.length; tries++) await sleep(100)
    expect(names()).toEqual(before)
  })

  test('the end of the process ends it', async () => {
    await serve()
    const end = fresh('end.g2p')
    const child = start(['record', '--attach', `${server.pid}`, '--no-states', '-o', end])
    const ended = once(child, 'close')
    let isOver = false
    const asked = load(() => isOver).catch(() => undefined)
    await thenSignal('SIGCONT')(child)
    isOver = true
    process.kill(server.pid, 'SIGKILL')
    await asked
    expect((await ended)[0]).toBe(0)
    expect((await readLog(at(end))).of('token').length).toBeGreaterThan(0)
  })
})

const linux = process.platform === 'linux' ? test : test.skip

linux('what cannot be attached to: no such process, one without llama.cpp, a program beside', async () => {
  const refused = (...args: string[]) => run(['record', '--attach', ...args])
  expect(refused('4194305').stderr).toBe('error: attach 4194305: there is no such process\n')
  expect(refused(`${process.pid}`).stderr).toMatch(/^error: attach \d+: .* has none of llama_decode, ggml_backend_/)
  expect(refused('1', '--ops', 'ADD').stderr).toBe('error: --attach: not possible with --ops\n')
  expect(refused('1', 'ls').stderr).toMatch(/^error: --attach: expected no program\n/)
  expect(run(['record', '--for', '3s', 'ls']).stderr).toBe('error: --for: expected --attach, too\n')
})
