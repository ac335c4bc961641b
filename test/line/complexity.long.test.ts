import { describe, expect, test } from '@jest/globals'
import { CallSpans } from '../../lib/analyze/power/spans.ts'
import { analyze } from '../../lib/index.ts'
import { checksum, HEADER_BYTES, Header, MAGIC } from '../../lib/log/ggtrace-layout.ts'
import type { TaskEvent, TokenEvent } from '../../lib/model/events.ts'
import { ServerLines } from '../../lib/pipeline/clocks/server-lines.ts'
import { logOf } from '../analyze/calls/made-run.ts'
import { attempt } from './hostile.ts'
import { plainBytes } from './support.ts'
import { workOf } from './work.ts' // before all that it counts

/**
 * Twice the input takes some twice the work, however the input is made: readers, timeline and writer together. Work is
 * counted, not timed.
 */

/** Twice the input may cost this many times the work. */
const RATIO_MAX = 2.5
/** Repetitions in the smaller input: enough for a quadratic term to show beside the linear one. */
const COUNT = 1500

const CPU_HEAD =
  ',ts,type,pid,cpu,guid,op,name,parm_addr,first_src_addr,second_src_addr,third_src_addr,ne0,src0_ne0,src1_ne0,src2_ne0,ne1,src0_ne1,src1_ne1,src2_ne1,ne2,src0_ne2,src1_ne2,src2_ne2,ne3,src0_ne3,src1_ne3,src2_ne3\n'
const probe = (i: number, type: number, pid: number, name: string, address = 4096) =>
  `${i},${3917038944582 + i * 100},${type},${pid},1,,40,${name},${address},${address + 64},${address + 128},0,64,64,64,0,5,5,5,0,1,1,1,0,1,1,1,0\n`

const json = (events: (i: number) => string) => (n: number) =>
  `{"traceEvents":[${Array.from({ length: n }, (_, i) => events(i)).join(',\n')}]}`
const lines = (head: string, line: (i: number) => string) => (n: number) =>
  head + Array.from({ length: n }, (_, i) => line(i)).join('')

const FTRACE_HEAD = '# tracer: nop\n#\n'
const ftrace = (i: number, cpu: number, event: string) =>
  `            p0pp-${1000 + i}   [${String(cpu).padStart(3, '0')}] ..... ${17488 + i}.851168: ${event}\n`
const switched = (from: number, to: number) =>
  `sched_switch: prev_comm=a prev_pid=${from} prev_prio=120 prev_state=S ==> next_comm=b next_pid=${to} next_prio=120`
const perf = (i: number, cpu: number | string, event: string) =>
  `p0pp ${1000 + i} [${cpu}] ${17492 + i}.127743:       sched:${event}\n`

/** A line of llama-server's log, some µs after the one before. */
const server = (i: number, line: string) => {
  const us = String(10_000_000 + 50 * i)
  return `0.${us.slice(0, 2)}.${us.slice(2, 5)}.${us.slice(5)} I ${line}\n`
}
const launch = (i: number, slot: number) =>
  server(i, `slot launch_slot_: id ${slot} | task ${i} | processing task, is_child = 0`)
/** Spans of requests, by trace, start and end in µs. */
const spans =
  (span: (i: number) => readonly [trace: number, name: string, start: number, end: number]) => (n: number) =>
    `{"resourceSpans":[{"scopeSpans":[{"spans":[${Array.from({ length: n }, (_, i) => {
      const [trace, name, start, end] = span(i)
      return `{"traceId":"${trace}","name":"${name}","startTimeUnixNano":"${1780e12 + start}000","endTimeUnixNano":"${1780e12 + end}000","attributes":[{"key":"rid","value":{"stringValue":"x"}},{"key":"gen_ai.latency.time_to_first_token","value":{"doubleValue":0.001}}]}`
    }).join(',\n')}]}]}]}`

const LLAMA_HEAD = 'Attaching 6 probes...\ng2p clock boot\ng2p fact script token\n'

const TEXTS: Readonly<Record<string, (n: number) => string>> = {
  'profinfer-csv: a thread a row': lines(CPU_HEAD, (i) => probe(i, 20, 1000 + i, 'embd')),
  'profinfer-csv: starts without ends': lines(CPU_HEAD, (i) => probe(i, 20, 7, 'embd')),
  'profinfer-csv: ends without starts': lines(CPU_HEAD, (i) => probe(i, 21, 7, 'embd')),
  'profinfer-csv: a name and a tensor a row': lines(CPU_HEAD, (i) =>
    probe(i, 20 + (i % 2), 7, `n-${i >> 1}`, 4096 * (i >> 1)),
  ),
  'profinfer-csv: backwards in time': lines(CPU_HEAD, (i) => probe(1e6 - i, 20 + (i % 2), 7, 'embd')),
  'chrome-json: begins without ends': json((i) => `{"ph":"B","name":"a","pid":1,"tid":1,"ts":${i}}`),
  'chrome-json: begins without ends, a thread each': json((i) => `{"ph":"B","name":"a","pid":1,"tid":${i},"ts":${i}}`),
  'chrome-json: ends without begins': json((i) => `{"ph":"E","name":"a","pid":1,"tid":1,"ts":${i}}`),
  'chrome-json: operations that do not end': json(
    (i) => `{"ph":"b","cat":"c","id":${i},"name":"a","pid":1,"tid":1,"ts":${i}}`,
  ),
  'chrome-json: operations that overlap': json((i) => {
    const [id, phase] = i % 2 === 0 ? [i / 2, 'b'] : [(i - 1) / 2 - 200, 'e']
    return `{"ph":"${phase}","cat":"c","id":${id},"name":"a","pid":1,"tid":1,"ts":${i}}`
  }),
  'chrome-json: slices in slices': json((i) => `{"ph":"X","name":"a","pid":1,"tid":1,"ts":${i},"dur":${1e6 - 2 * i}}`),
  'chrome-json: slices that cross': json((i) => `{"ph":"X","name":"a","pid":1,"tid":1,"ts":${i},"dur":500}`),
  'chrome-json: slices backwards': json((i) => `{"ph":"X","name":"a","pid":1,"tid":1,"ts":${1e6 - i},"dur":0.5}`),
  'chrome-json: arrows without ends': json(
    (i) => `{"ph":"s","cat":"c","id":${i},"name":"a","pid":1,"tid":1,"ts":${i}}`,
  ),
  'chrome-json: one arrow of many steps': json(
    (i) => `{"ph":"t","cat":"c","id":1,"name":"a","pid":1,"tid":1,"ts":${i}}`,
  ),
  'chrome-json: names of threads': json(
    (i) => `{"ph":"M","name":"thread_name","pid":1,"tid":${i},"args":{"name":"t${i}"}}`,
  ),
  'chrome-json: a counter each': json((i) => `{"ph":"C","name":"c${i}","pid":1,"ts":${i},"args":{"v":1}}`),
  'chrome-json: an argument each': json(
    (i) => `{"ph":"X","name":"a","pid":1,"tid":1,"ts":${i},"dur":1,"args":{"k${i}":1}}`,
  ),
  // Both in several pieces, as the beginning of an event is read again.
  'chrome-json: many arguments': (n) =>
    `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{${Array.from({ length: 16 * n }, (_, i) => `"k${i}":${i}`).join()}}}]}`,
  'chrome-json: lists in lists': (n) =>
    `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k":${'['.repeat(n)}`,
  'chrome-json: damaged again and again': json((i) => `{"ph":"X","name":"a","pid":1,"tid":1,"ts":${i},"dur":1}} x`),
  'chrome-json: kernels and their launches': json((i) =>
    i % 2 === 0
      ? `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":${i},"dur":1,"args":{"correlation":${i}}}`
      : `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":${i},"dur":1,"args":{"stream":7,"device":0,"correlation":${i - 1}}}`,
  ),
  'chrome-json: launches in all operators': json(
    (i) =>
      `{"ph":"X","cat":"cpu_op","name":"o","pid":1,"tid":1,"ts":${i},"dur":${2e6 - 2 * i}},
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":${1e6 + i},"dur":0.5,"args":{"correlation":${i}}},
      {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":${1e6 + i + 0.6},"dur":0.1,"args":{"stream":7,"device":0,"correlation":${i}}}`,
  ),
  'chrome-json: launches in operators of processes with one number of a thread': json(
    (i) =>
      `{"ph":"X","cat":"cpu_op","name":"o","pid":${i + 1},"tid":1,"ts":${i},"dur":1e6},
      {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":${i + 1},"tid":1,"ts":${i + 0.1},"dur":0.5,"args":{"correlation":${i}}},
      {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":${i + 0.7},"dur":0.1,"args":{"stream":7,"device":0,"correlation":${i}}}`,
  ),
  'chrome-json: kernels and their launches, a process and a device each': json((i) =>
    i % 3 === 0
      ? `{"ph":"X","cat":"cpu_op","name":"o${i}","pid":${i},"tid":${i},"ts":${i},"dur":2}`
      : i % 3 === 1
        ? `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":${i - 1},"tid":${i - 1},"ts":${i},"dur":1,"args":{"correlation":${i}}}`
        : `{"ph":"X","cat":"kernel","name":"k","pid":${i},"tid":7,"ts":${i},"dur":1,"args":{"stream":7,"device":${i},"correlation":${i - 1}}}`,
  ),
  'nsys-gpu-trace: a stream each': lines(
    'Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name\n',
    (i) => `${1949099896 + i},1632,${i},64,,NVIDIA RTX A4500 (0),1,${i},"k${i}"\n`,
  ),
  'nsys-gpu-trace: a device each': lines(
    'Start (ns),Duration (ns),CorrId,GrdX,Bytes (MB),Device,Ctx,Strm,Name\n',
    (i) => `${1949099896 + i},1632,${i},64,,NVIDIA RTX A4500 (${i}),1,7,"k${i}"\n`,
  ),
  'nsys-nvtx-trace: ranges in ranges': lines(
    'Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,RangeStack,NameTree\n',
    (i) => `${26940649047 + i},${26950649047 - i},1,0,1,"r",1,1,${i},0,${i},,:1,"r"\n`,
  ),
  'ftrace: a thread each': lines(FTRACE_HEAD, (i) => ftrace(i, 0, switched(1000 + i, 1001 + i))),
  'ftrace: a CPU each': lines(FTRACE_HEAD, (i) => ftrace(i, i % 4096, switched(1000 + i, 1001 + i))),
  'ftrace: backwards': lines(FTRACE_HEAD, (i) => ftrace(20_000 - i, 0, switched(1000, 1001))),
  'ftrace: an event each': lines(FTRACE_HEAD, (i) => ftrace(i, 0, i < 5 ? switched(1000 + i, 1001 + i) : `e${i}: x=1`)),
  'ftrace: forks': lines(FTRACE_HEAD, (i) =>
    ftrace(i, 0, `sched_process_fork: comm=a pid=${1000 + i} child_comm=b child_pid=${1001 + i}`),
  ),
  'ftrace: no lines of it': lines(FTRACE_HEAD, (i) =>
    i < 5 ? ftrace(i, 0, switched(1000 + i, 1001 + i)) : `- [${i}] : ${i}.5: \n`,
  ),
  'perf-script: a thread each': lines('', (i) => perf(i, '000', switched(1000 + i, 1001 + i))),
  'perf-script: a CPU each': lines('', (i) => perf(i, String(i % 4096).padStart(3, '0'), switched(1000 + i, 1001 + i))),
  'bpftrace: a thread each': lines(
    'Attaching 6 probes...\ng2p clock boot\ng2p fact script sched\n',
    (i) => `g2p switch ${1e9 + i} 0 ${i} a 120 1 ${i + 1} b 120\n`,
  ),
  'bpftrace: spans of threads whose calls do not come': lines(
    LLAMA_HEAD,
    (i) => `g2p span ${1e9 + i} 0 ${i} ${1e9 + i + 1} 0 ${i} 1\n`,
  ),
  'bpftrace: spans of one call': lines(LLAMA_HEAD, (i) => `g2p span 1000000000 0 7 ${1e9 + i + 1} ${i} 3 1\n`),
  'bpftrace: removals': lines(LLAMA_HEAD, (i) => `g2p remove ${1e9 + i} 0 7 ${i} 3 -1\n`),
  'bpftrace: removals before each call': lines(LLAMA_HEAD, (i) =>
    i % 3 === 0
      ? `g2p remove ${1e9 + i} 0 7 0 3 -1\n`
      : i % 3 === 1
        ? `g2p span ${1e9 + i} 0 7 ${1e9 + i + 1} 0 3 1\n`
        : `g2p token ${1e9 + i - 1} 0 7 ${1e9 + i} 1 0\n`,
  ),
  'profinfer-ktrace: a thread each': lines(
    'Children PIDs are: 700,701,702\n',
    (i) => `${3917038947489 + i} [0] sched_switch: [a ${700 + i} 120 0] => [b ${701 + i} 120]\n`,
  ),
  'llama-server: launches without releases': lines('', (i) => launch(i, i)),
  'llama-server: launches in a few slots': lines('', (i) => launch(i, i % 4)),
  'llama-server: requests one after the other': lines('', (i) =>
    i % 2 === 0
      ? launch(i, 0)
      : server(i, `slot      release: id 0 | task ${i - 1} | stop processing: n_tokens = 5, truncated = 0`),
  ),
  'llama-server: tasks that wait': lines('', (i) =>
    server(
      i,
      i % 2 === 0
        ? `que          post: new task, id = ${i}, front = 0`
        : `srv  process_sing: no slot is available, defer task, id_task = ${i - 1}`,
    ),
  ),
  'llama-server: tasks that are posted': lines('', (i) =>
    server(i, `que          post: new task, id = ${i}, front = 0`),
  ),
  'otlp: requests one after the other': spans((i) => [i, 'Req 1', 1e6 * i, 1e6 * i + 5e5]),
  'otlp: requests backwards': spans((i) => [i, 'Req 1', 1e9 - 1e3 * i, 1e9 - 1e3 * i + 500]),
  'otlp: requests that overlap': spans((i) => [i, 'Req 1', i, 1e9 + i]),
  'otlp: stages that overlap, of one trace': spans((i) => [1, i % 2 ? 'Req 1' : 'prefill_forward', i, 1e9 + i]),
  'buffer-stats: buffers that stay': lines(
    '',
    (i) =>
      `{"timestamp_ms":${i},"event":"alloc","buffer_id":${i},"buffer_ptr":4096,"size":4096,"name":"CPU","backend":"CPU","usage":2,"layer":3}\n`,
  ),
}

const words = (...all: number[]) => new Uint8Array(Uint32Array.from(all).buffer)

/** Blocks of event records with nothing in them, that need definitions which never come. */
function waitingBlocks(n: number): Uint8Array {
  const blocks = Array.from({ length: n }, (_, i) => {
    const block = new Uint8Array(HEADER_BYTES)
    const view = new DataView(block.buffer)
    view.setUint32(0, MAGIC, true)
    view.setUint32(Header.size, HEADER_BYTES, true)
    view.setUint16(Header.kind, 3, true)
    view.setUint16(Header.writer, i % 60_000, true)
    view.setUint32(Header.needs, 1e6, true)
    view.setUint32(Header.checksum, checksum(view, 0, HEADER_BYTES), true)
    return block
  })
  return Buffer.concat(blocks)
}

const BYTES: Readonly<Record<string, (n: number) => Uint8Array>> = {
  'ggtrace: a header of 1 MiB every 8 bytes': (n) =>
    Buffer.concat(Array.from({ length: 40 * n }, () => words(MAGIC, 1 << 20))),
  'ggtrace: blocks that wait': waitingBlocks,
  'tensor-trace: the same record': (n) =>
    Buffer.concat(Array.from({ length: n / 10 }, () => plainBytes('tensor-trace/tiny-256.bin').subarray(0, 2560))),
}

/** What an input is made into: a trace, and figures. */
const WAYS = {
  trace: (input: Uint8Array) => attempt(input, 'an input that grows'),
  figures: (input: Uint8Array) => analyze([{ name: 'log', source: input }]).catch(refusal),
}

/** Fails unless the input was refused with a message. */
function refusal(error: Error): void {
  if (error.name !== 'FormatError' && error.name !== 'UsageError') throw error
}

/** How many times the work twice the input is, for each way. */
async function ratiosOf(make: (n: number) => Uint8Array | string): Promise<Record<string, number>> {
  const [small, large] = [COUNT, 2 * COUNT].map((n) => new Uint8Array(Buffer.from(make(n) as string)))
  const ratios: Record<string, number> = {}
  for (const [way, run] of Object.entries(WAYS)) {
    await run(small!) // for V8 to know the code
    const once = await workOf(() => run(small!))
    ratios[way] = (await workOf(() => run(large!))) / once
  }
  return ratios
}

describe('twice the input is some twice the work', () => {
  test.each(Object.keys({ ...TEXTS, ...BYTES }))('%s', async (name) => {
    const ratios = await ratiosOf(TEXTS[name] ?? BYTES[name]!)
    expect(Object.entries(ratios).filter(([, ratio]) => !(ratio < RATIO_MAX))).toEqual([])
  })
})

test('twice as many calls of alternating phases, which cannot be merged, are some twice the work', async () => {
  const work = (count: number) =>
    workOf(async () => {
      const spans = new CallSpans()
      for (let i = 0; i < count; i++) spans.add(i % 2 ? 'decode' : 'prefill', 1, 1000 * i, 1000 * i + 900)
      expect(spans.sorted()).toHaveLength(count)
    })
  // Both are merged once, from 2 ** 18 on.
  expect((await work(500_000)) / (await work(300_000))).toBeLessThan(RATIO_MAX)
})

test('twice as many graph runs of one node in a call are some twice the work', async () => {
  const work = (count: number) => {
    const operators = Array.from({ length: count }, () => ({ node: 'attn_q-0 MUL_MAT', ns: 1000 }))
    return workOf(() => analyze([logOf([{ startNs: 0, endNs: 1000 * count, operators }])]))
  }
  await work(COUNT)
  expect((await work(2 * COUNT)) / (await work(COUNT))).toBeLessThan(RATIO_MAX)
})

describe('a log of a server next to calls of 10 s', () => {
  /** Launches and releases, evenly in so many days. */
  const work = (count: number, days: number) => {
    const [log, calls] = [new ServerLines(), new ServerLines()]
    for (let i = 0; i < 2 * count; i++) {
      const [what, atNs] = [i % 2 ? 'release' : 'launch', (i * days * 86_400e9) / (2 * count)]
      log.see({ kind: 'task', what, atNs, tid: -1, task: i >> 1, slot: 0, values: {} } as TaskEvent)
    }
    for (let call = 0; call < count; call++) {
      const startNs = (call * 10e9) / count
      calls.see({ kind: 'token', call, tokens: 1, startNs, endNs: startNs + 1e6, tid: 7 } as TokenEvent)
    }
    return workOf(async () => expect(calls.relationOf(log)).toHaveProperty('why'))
  }

  test('twice as many lines and calls are some twice the work', async () => {
    expect((await work(2 * COUNT, 1)) / (await work(COUNT, 1))).toBeLessThan(RATIO_MAX)
  })

  test('as many lines in twice the time are as much work', async () => {
    expect((await work(COUNT, 60)) / (await work(COUNT, 30))).toBeLessThan(1.2)
  })
})

test('twice as many issues of one time, fewer than are drawn, are some twice the work', async () => {
  const head = plainBytes('power/power.csv')
  const input = (count: number) => new Uint8Array(Buffer.concat([head, Buffer.from('damaged\n'.repeat(count))]))
  const work = (count: number) => workOf(() => WAYS.trace(input(count)))
  await work(400)
  expect((await work(800)) / (await work(400))).toBeLessThan(RATIO_MAX)
})
