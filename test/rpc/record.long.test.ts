import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { convert, eventsOf, type Input, type TraceEvent } from '../../lib/index.ts'
import { randomOf } from '../../lib/model/random.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { run, useFolder } from '../cli/helpers.ts'
import { ensureLlama, hasLlama, model, RPC_LIB, run as runModel, runner } from '../llama/testbed.ts'
import { NANO, newLog, RECORDER, readLog, useRecorder } from '../native/recording.ts'
import { summariesOf } from './exchange.ts'

/** A client of ggml-rpc and its server, both recorded; and the clocks of both, related by their messages. */

useFolder()
const hasCompiler = spawnSync('g++', ['--version'], { stdio: 'ignore' }).status === 0
const llama = hasLlama() && hasCompiler ? describe : describe.skip

/** RPC_RUNS=50: the trial of docs/reference/compatibility.md. */
const RUNS = Number(process.env['RPC_RUNS'] ?? 1)

/** A command in a time namespace whose clock is this far ahead. */
const ahead = (seconds: number) => ['unshare', '--time', '--monotonic', `${seconds}`, '--fork']
/** Another host: a network of its own, with an address that is reached through a pair of interfaces. */
const HOST = `g2p-${process.pid}`
const ADDRESSES = ['10.213.77.1', '10.213.77.2'] as const
const succeeds = ([command, ...args]: readonly string[]) => spawnSync(command!, args, { stdio: 'ignore' }).status === 0
const addHost = () =>
  [
    `ip netns add ${HOST}`,
    `ip link add ${HOST}a type veth peer name ${HOST}b netns ${HOST}`,
    `ip addr add ${ADDRESSES[0]}/30 dev ${HOST}a`,
    `ip link set ${HOST}a up`,
    `ip -n ${HOST} addr add ${ADDRESSES[1]}/30 dev ${HOST}b`,
    `ip -n ${HOST} link set ${HOST}b up`,
  ].every((line) => succeeds(line.split(' ')))
const removeHost = () => succeeds(['ip', 'netns', 'del', HOST])
const canUnshare = succeeds([...ahead(1), 'true'])

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

const isOpen = (port: number, host: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host, () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

/** The commands that ggml-rpc itself says it served, where it was built to say so: `[graph_compute] device: 0, …`. */
const servedIn = (output: string) => {
  const counts = new Map<string, number>()
  for (const [, name] of output.matchAll(/^\[(\w+)\] /gm)) counts.set(name!, (counts.get(name!) ?? 0) + 1)
  return counts
}

/** A preloaded recorder, without thread states: their times are not those of a time namespace. */
const recorded = (log: string | undefined) =>
  log === undefined ? {} : { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log, GGML2PERFETTO_STATES: '0' }

async function serve(before: readonly string[], log: string | undefined, host: string) {
  const port = await freePort()
  // What is preloaded records the process that it is loaded into first.
  const variables = Object.entries({ GGML_RPC_DEBUG: '1', ...recorded(log) }).map(([name, value]) => `${name}=${value}`)
  const program = [await runner(), '--lib', RPC_LIB, '--serve', `${host}:${port}`, '--verbose']
  const [command, ...args] = [...before, 'env', ...variables, ...program]
  const child: ChildProcess = spawn(command!, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  const closed = once(child, 'close') // and its output
  let output = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  while (!(await isOpen(port, host))) {
    if (child.exitCode !== null) throw new Error(`the server ended: ${output}`)
    await sleep(20)
  }
  const stop = async () => {
    child.stdin!.end()
    await closed
    return { code: child.exitCode, served: servedIn(output) }
  }
  return { address: `${host}:${port}`, stop }
}

/** Decodes on a server. Without logs, nothing is recorded. */
async function decode(
  logs: { client: string; server: string } | undefined,
  before: readonly string[] = [],
  host = '127.0.0.1',
) {
  for (const path of Object.values(logs ?? {})) mkdirSync(dirname(path), { recursive: true })
  const { path } = await model(NANO)
  const server = await serve(before, logs?.server, host)
  const args = ['--lib', RPC_LIB, '--rpc', server.address, '--gpu-layers', '99', '--threads', '1', '--decode', '12']
  const { result, code } = await runModel(path, args, { env: recorded(logs?.client) })
  const { served, ...ended } = await server.stop()
  return { hash: result?.hash, codes: [code, ended.code], served }
}

const messagesIn = async (log: string) => {
  const { of, issues, text } = await readLog(log)
  expect(issues).toEqual([])
  const messages = of('rpc').map(({ command, client, server, ...message }) => ({
    ...message,
    ends: `${text(client)} ${text(server)}`,
    command: text(command),
  }))
  return messages.sort((a, b) => (a.ends === b.ends ? a.number - b.number : a.ends < b.ends ? -1 : 1))
}

/** The same log from a machine whose clock is ahead, without some of its messages. */
const moved = (log: string, offsetNs: bigint, isLost: () => boolean): Input => ({
  name: 'server.ggtrace',
  async *events(names) {
    for await (const batch of eventsOf(inputOf(log), names))
      yield batch.flatMap((event): TraceEvent[] => {
        if (event.kind === 'rpc' && isLost()) return []
        if (event.kind !== 'input') return event.kind === 'clocks' ? [] : [event]
        return [
          { ...event, originNs: event.originNs + offsetNs, attributes: { ...event.attributes, boot_id: 'other' } },
        ]
      })
  },
})

llama('ggml-rpc (needs linux-x64, cc and g++)', () => {
  useRecorder()
  const logs = { client: '', server: '' }
  let plain: Awaited<ReturnType<typeof decode>>
  let traced: Awaited<ReturnType<typeof decode>>

  beforeAll(async () => {
    await ensureLlama({ rpc: true })
    Object.assign(logs, { client: newLog(), server: newLog() })
    plain = await decode(undefined)
    traced = await decode(logs)
  })

  test('computes the same, and each process has its side of each message', async () => {
    expect(traced.hash).toMatch(/./)
    expect(traced).toEqual(plain)
    const [client, server] = [await messagesIn(logs.client), await messagesIn(logs.server)]
    expect(client.length).toBeGreaterThan(50)
    const shared = ({ number, ends, command, requestBytes, answerBytes, answeredNs }: (typeof client)[number]) => ({
      ...{ number, ends, command, requestBytes, answerBytes, hasAnswer: answeredNs !== undefined },
    })
    expect(server.map(shared)).toEqual(client.map(shared))
    for (const [i, { ends, number }] of client.entries())
      expect(number).toBe(client[i - 1]?.ends === ends ? client[i - 1]!.number + 1 : 0)
    const counts = new Map<string, number>()
    for (const { command } of server) counts.set(command.toLowerCase(), (counts.get(command.toLowerCase()) ?? 0) + 1)
    for (const name of ['graph_compute', 'graph_recompute', 'get_tensor', 'set_tensor', 'alloc_buffer', 'free_buffer'])
      expect([name, counts.get(name) ?? 0]).toEqual([name, traced.served.get(name) ?? 0])
  })

  test('is one trace: arrows lead from the client to the server’s work, and back', async () => {
    const trace = await openTrace(convert([inputOf(logs.client), inputOf(logs.server)]))
    try {
      expect(trace.problems()).toEqual([])
      const [[early, count, answered]] = trace.query(`select sum(b.ts < a.ts), count(*), sum(x.name like '%from %')
        from flow join slice a on a.id = slice_out join slice b on b.id = slice_in join track x on x.id = a.track_id
        where a.category = 'rpc_part' and b.category = 'rpc_part'`).rows as [[number, number, number]]
      const client = await messagesIn(logs.client)
      expect(early).toBe(0)
      expect([count, answered]).toEqual([
        client.length + client.filter(({ answeredNs }) => answeredNs !== undefined).length,
        client.filter(({ answeredNs }) => answeredNs !== undefined).length,
      ])
    } finally {
      trace.close()
    }
  })

  test('is one run for why, in which calls wait for the server, with what that computes of it', () => {
    const why = (...names: readonly string[]) => run(['why', ...names])
    const alone = why(logs.client)
    expect([alone.code, alone.stdout.split('\n')[0]]).toEqual([
      0,
      expect.stringMatching(/; \d+ % of decode waits for RPC0\S*: .* is in the log of the server$/),
    ])
    for (const names of [
      [logs.client, logs.server],
      [logs.server, logs.client],
    ]) {
      const { code, stdout } = why(...names)
      expect([code, stdout.split('\n')[0]]).toEqual([
        0,
        expect.stringMatching(
          /; \d+ % of decode waits for RPC0\S*: .*; its server computes [\d.]+ % of such time, messages and their transfer take [\d.]+ %$/,
        ),
      ])
    }
  })

  test('on two machines: the stated error bounds the offset, in 50 of 50 runs', async () => {
    const random = randomOf(3)
    const bounds: number[] = []
    for (let run = 0; run < 50; run++) {
      const offsetNs = BigInt(Math.round(random() * 1e16))
      const kept = [1, 0.5, 0.2, 0.1][run % 4]!
      const [, server] = await summariesOf([
        { ...inputOf(logs.client), name: 'client.ggtrace' },
        moved(logs.server, offsetNs, () => random() > kept),
      ])
      const { offset_ns, bound_ns } = server!.relation!
      expect(Math.abs(Number(BigInt(offset_ns) + offsetNs))).toBeLessThanOrEqual(bound_ns!)
      bounds.push(bound_ns!)
    }
    expect(Math.min(...bounds)).toBeGreaterThan(0)
  })

  ;(canUnshare ? test : test.skip)(
    'in a time namespace, of another host where one can be made: so it does',
    async () => {
      const [random, errors] = [randomOf(5), [] as string[]]
      const hasHost = addHost()
      try {
        for (let run = 0; run < RUNS; run++) {
          const apart = { client: newLog(), server: newLog() }
          const seconds = Math.round(random() * 1e7)
          const before = [...(hasHost ? ['ip', 'netns', 'exec', HOST] : []), ...ahead(seconds)]
          expect(await decode(apart, before, hasHost ? ADDRESSES[1] : undefined)).toEqual(plain)
          const [, server] = await summariesOf([inputOf(apart.client), inputOf(apart.server)])
          const { how, offset_ns, bound_ns } = server!.relation!
          expect(how).toMatch(/^inferred from \d+ messages of ggml-rpc/)
          const error = Math.abs(Number(BigInt(offset_ns) + BigInt(seconds) * 1_000_000_000n))
          errors.push(
            `${hasHost ? 'another' : 'the same'} network, ${seconds} s ahead: wrong by ${error} ns, at most ${bound_ns} ns stated`,
          )
          expect([errors.at(-1), error <= bound_ns!]).toEqual([errors.at(-1), true])
        }
      } finally {
        removeHost()
      }
      if (RUNS > 1) console.log(errors.join('\n'))
    },
  )
})
