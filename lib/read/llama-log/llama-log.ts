// What programs of llama.cpp print about their own speed, among their other lines (stderr, --log-file):
//
//   common_perf_print: prompt eval time =   34618.54 ms /    29 tokens ( 1193.74 ms per token,     0.84 tokens per second)
//   Vulkan Timings:                                                          GGML_VK_PERF_LOGGER=1: sums of each graph
//   MUL_MAT_VEC q4_0 m=64 n=1 k=64: 97 x 376.031 us = 36475 us (0.0216152 GFLOPS/s)
//   ET_PERF|op=MUL_MAT|kernel=…|duration_us=3112|tensor=Qcur-0|shape=[4096,2,1,1]|start_us=48437862009|end_us=48437865121|flops=67100672
//   ggml-hex: HTP0 profile-op MUL_MAT|names|dims|types|strides|kparams|usec 123 cycles 456 start 789 mhz 1190.0
//
// Lines may begin with the time since the program's start, "0.23.487.094 W " (--log-timestamps).
//
//     perf-lines.ts   the sums of a context at the end of the run
//     operators.ts    operators of the ET and Hexagon backends

import { LineCursor } from '../../input/line-cursor.ts'
import { type BenchmarkEvent, Inferred, type InputEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { Names } from '../../model/names.ts'
import { AllFacts } from '../common/all-facts.ts'
import { type DeviceOperator, deviceOperator } from '../common/device-work.ts'
import { headText } from '../common/head.ts'
import { holding } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import { ownTime } from '../common/own-time.ts'
import type { Format } from '../format.ts'

const TEXT_MAX = 1000
const WHOLE_US = /^\d{1,15}$/

/** Operators of the ET backend (ggml-et, ET_PERF_END): fields between bars. */
const EtOperator = {
  /** Undefined for a line without start and end. `start`: in ns of ggml_time_us, CLOCK_MONOTONIC. */
  read(text: string): (DeviceOperator & { readonly start: bigint }) | undefined {
    const fields = new Map(
      text
        .slice(text.indexOf('ET_PERF|') + 8)
        .trim()
        .split('|')
        .map((field): [string, string] => {
          const at = field.indexOf('=')
          return [field.slice(0, at), field.slice(at + 1, at + 1 + TEXT_MAX)]
        }),
    )
    const [start, end, op] = [fields.get('start_us') ?? '', fields.get('end_us') ?? '', fields.get('op') ?? '']
    if (!WHOLE_US.test(start) || !WHOLE_US.test(end) || op === '' || Number(end) < Number(start)) return undefined
    const facts: Record<string, number | string> = {}
    for (const key of ['tensor', 'kernel', 'shape']) if (fields.get(key)) facts[key] = fields.get(key)!
    const flops = Number(fields.get('flops') || NaN)
    if (Number.isSafeInteger(flops) && flops >= 0) facts['flop'] = flops
    return { name: op, timeNs: (Number(end) - Number(start)) * 1000, start: BigInt(start) * 1000n, facts, inferred: 0 }
  },
}

/** `ggml-hex: HTP0 profile-op NAME|…|usec 123 cycles 456 start 789 mhz 1190.0`; older: fields between ` : `. */
const HEXAGON = /ggml-hex: (\S+) profile-op ([^|:]+?) ?[|:](.*)/
const USEC = /\busec (\d+)/
const CYCLES = /\bstart (\d+)(?:.*\bmhz ([\d.]+))?/
const WRAP = 2 ** 32

/** Operators of the Hexagon backend (GGML_HEXAGON_PROFILE). The processor's counter has 32 bits and wraps. */
class HexagonOperators {
  /** By device: the counter at its last operator, and cycles since its first one. */
  private readonly devices = new Map<string, { last: number; cycles: number }>()

  /** Undefined for a line that cannot be read; `batch` for a batch of operators, which are printed by themselves. */
  read(text: string): (DeviceOperator & { readonly device: string; readonly startNs?: number }) | 'batch' | undefined {
    const [, device, op, rest] = HEXAGON.exec(text) ?? []
    const usec = USEC.exec(rest ?? '')?.[1]
    if (device === undefined || usec === undefined || usec.length > 12) return undefined
    if (op === 'OPBATCH') return 'batch'
    const fields = rest!.split(/ : |\|/).map((field) => field.trim())
    const facts: Record<string, number | string> = {}
    ;['tensors', 'dims', 'types'].forEach((key, i) => {
      const value = fields[i]
      if (value && value !== '----' && !USEC.test(value)) facts[key] = value.slice(0, TEXT_MAX)
    })
    return { name: op!, timeNs: Number(usec) * 1000, facts, device, ...this.placeOf(device, rest!) }
  }

  /** Ns since its device's first operator, without the counter's whole turns; undefined where the line has no counter or no frequency. */
  private placeOf(device: string, text: string): Pick<DeviceOperator, 'inferred'> & { readonly startNs?: number } {
    const [, start, mhz] = CYCLES.exec(text) ?? []
    if (start === undefined || !(Number(mhz) > 0)) return {}
    const counter = Number(start) % WRAP
    const known = this.devices.get(device)
    const delta = known === undefined ? 0 : (counter - known.last + WRAP) % WRAP
    // A little back is an operator that began before the one printed before it.
    const cycles = (known?.cycles ?? 0) + (delta > WRAP / 2 ? delta - WRAP : delta)
    this.devices.set(device, { last: counter, cycles })
    const ns = Math.round((cycles * 1000) / Number(mhz))
    return Number.isSafeInteger(ns) ? { startNs: Math.max(0, ns), inferred: Inferred.Turns } : {}
  }
}

const PERF = /^(?:llama_perf_context_print|llama_perf_sampler_print|llama_print_timings|common_perf_print): *(\S.*)/
const TIMES = /^(prompt eval|eval) time = +([\d.]+) ms \/ +(\d+) (?:tokens|runs)/
const FACTS = /^(load|sampling|samplers|total|unaccounted) time = +([\d.]+) ms/
const REUSED = /^graphs reused = +(\d+)/

/** Reads the sums that llama.cpp prints of a context at the end of a run. */
class PerfLines {
  /** Of all contexts: a run with a draft model prints those of both. */
  readonly facts = new AllFacts()
  private readonly tests: { name: string; ns: number; tokens: number }[] = []
  private isWhole = false
  private count = 0

  constructor(private readonly names: Names) {}

  /** False for another line. */
  read(text: string): boolean {
    const line = PERF.exec(text.trim())?.[1]
    if (line === undefined) return false
    const [, name, ms, tokens] = TIMES.exec(line) ?? []
    if (name !== undefined) {
      const ns = Math.round(Number(ms) * 1e6)
      if (ns > 0 && Number(tokens) > 0 && Number.isSafeInteger(ns))
        this.tests.push({ name, ns, tokens: Number(tokens) })
      this.isWhole = name === 'eval'
      return true
    }
    const [, what, time] = FACTS.exec(line) ?? []
    if (what !== undefined) this.facts.add(`${what}_time_ms`, Number(time))
    const reused = REUSED.exec(line)?.[1]
    if (reused !== undefined) this.facts.add('graphs_reused', Number(reused))
    return true
  }

  /** The speeds of a context, once all of its times were read. `atNs`: when they were printed: they end then, one after the other. */
  take(atNs: number): readonly BenchmarkEvent[] {
    if (!this.isWhole) return []
    this.isWhole = false
    const tests = this.tests.splice(0)
    const sumNs = tests.reduce((sum, { ns }) => sum + ns, 0)
    let startNs = Math.max(0, atNs - sumNs)
    return tests.map(({ name, ns, tokens }): BenchmarkEvent => {
      const counts =
        name === 'eval' ? { promptTokens: 0, generatedTokens: tokens } : { promptTokens: tokens, generatedTokens: 0 }
      const event: BenchmarkEvent = {
        ...{
          kind: 'benchmark',
          test: this.count++,
          name: this.names.id(name),
          startNs,
          endNs: startNs + ns,
          ...counts,
        },
        ...{ depth: 0, samplesNs: [], stated: { mean: (tokens * 1e9) / ns, deviation: -1 }, parameters: {} },
        inferred: Inferred.Laid,
      }
      startNs += ns
      return event
    })
  }
}

const OWN_LINE =
  /^(?:\d{1,7}\.\d\d\.\d{3}\.\d{3} )?(?:[IWED] )?(?:llama_(?:completion|cli|perf_context_print|print_timings|model_loader|context)|common_perf_print|load_backend|ggml_vulkan|ggml_cuda_init|main|build|system_info): |^Vulkan Timings:|^ET_PERF\||ggml-hex: \S+ profile-op /m
/** Logs of a server have a format of their own. */
const SERVER_LINE = /^(?:\d{1,7}\.\d\d\.\d{3}\.\d{3} )?(?:[IWED] )?(?:slot|srv|que) +\S+: /m
const BATCH_EVENTS = 4096

export const llamaLog: Format = {
  name: 'llama-log',
  title: 'output of llama.cpp programs: perf lines, GGML_VK_PERF_LOGGER, ET_PERF, GGML_HEXAGON_PROFILE',
  sniff: (head) => {
    const text = headText(head)
    return OWN_LINE.test(text) && !SERVER_LINE.test(text)
  },
  read: (source, { names }) => new OutputLog(new LineCursor(source, llamaLog.name, true), names).batches(),
}

class OutputLog extends LineReader {
  private readonly perf: PerfLines
  private readonly hexagon = new HexagonOperators()
  /** Ends of what is laid end to end. */
  private laidNs = 0
  /** The time of the last line that has one. */
  private stampNs = 0
  /** Of the first operator with a time of CLOCK_MONOTONIC; and the input's time then. */
  private originNs: bigint | undefined
  private originAtNs = 0
  private isInTimings = false
  private readonly counts = { graphs: 0, sums: 0, operators: 0, measured: 0, others: 0 }

  constructor(
    lines: LineCursor,
    private readonly names: Names,
  ) {
    super(lines, BATCH_EVENTS)
    this.perf = new PerfLines(names)
  }

  protected override readLine({ text: line }: LineCursor): void {
    const own = ownTime(line)
    if (own) this.stampNs = Math.max(this.stampNs, own.ns)
    const text = own?.message ?? line
    if (text === VULKAN_HEAD) {
      this.isInTimings = true
      this.counts.graphs++
    } else if (this.isInTimings && this.vulkan(text)) return
    else if (text.includes('ET_PERF|')) this.et(text)
    else if (text.includes(' profile-op ')) this.hex(text)
    else if (!this.measured(text)) this.counts.others++
  }

  /** A row of the Vulkan logger, or its end; false: another line. */
  private vulkan(text: string): boolean {
    if (VULKAN_TOTAL.test(text)) {
      this.isInTimings = false
      return true
    }
    const sum = sumOf(text)
    if (!sum) return false
    this.begin('unknown')
    const startNs = Math.max(this.laidNs, this.stampNs)
    this.laidNs = startNs + sum.timeNs
    this.counts.sums++
    this.batch.add(deviceOperator(this.names, 'Vulkan, sums of graphs', sum, startNs, this.laidNs))
    return true
  }

  private et(text: string): void {
    const operator = EtOperator.read(text)
    if (!operator) return this.unreadable('expected ET_PERF with start_us and end_us', text)
    this.begin('MONOTONIC', operator.start)
    if (this.originNs === undefined) {
      this.originNs = operator.start
      this.originAtNs = this.stampNs
    }
    const startNs = this.originAtNs + Number(operator.start - this.originNs)
    this.counts.operators++
    this.batch.add(deviceOperator(this.names, 'ET', operator, startNs, startNs + operator.timeNs))
  }

  private hex(text: string): void {
    const operator = this.hexagon.read(text)
    if (operator === undefined) return this.unreadable('expected an operator with usec', text)
    if (operator === 'batch') {
      this.batch.leftOut.add('batches of operators')
      return
    }
    this.begin('unknown')
    const startNs = operator.startNs ?? Math.max(this.laidNs, this.stampNs)
    this.laidNs = Math.max(this.laidNs, startNs + operator.timeNs)
    this.counts.operators++
    this.batch.add(deviceOperator(this.names, operator.device, operator, startNs, startNs + operator.timeNs))
  }

  private measured(text: string): boolean {
    const isKnown = this.perf.read(text)
    const tests = this.perf.take(Math.max(this.stampNs, this.laidNs))
    if (tests.length > 0) this.begin('unknown')
    for (const test of tests) {
      this.batch.add(test)
      this.laidNs = Math.max(this.laidNs, test.endNs)
      this.counts.measured++
    }
    return isKnown
  }

  private unreadable(expected: string, text: string): void {
    this.begin('unknown')
    const detail = `${expected}, found ${JSON.stringify(text.slice(0, 80))}`
    const code = this.lines.isTorn ? 'torn-record' : 'unreadable-row'
    this.batch.add(issueOf(code, detail, this.lines.position, this.stampNs))
  }

  /** Begins with the first figure: operators of the ET backend alone are on CLOCK_MONOTONIC. */
  private begin(clock: 'MONOTONIC' | 'unknown', originNs = 0n): void {
    if (this.batch.hasBegun) return
    const isTimed = clock === 'MONOTONIC' && this.stampNs === 0
    const times = isTimed
      ? 'those of the operators'
      : "since the program's start, where its lines have times; sums are laid end to end"
    const input: InputEvent = {
      ...{
        kind: 'input',
        format: llamaLog.name,
        clock: isTimed ? clock : 'unknown',
        originNs: isTimed ? originNs : 0n,
        times: isTimed ? 'recorded' : 'durations',
      },
      attributes: { times },
      title: 'Output of llama.cpp',
      capabilities: { order: false, operators: false, requests: true },
    }
    this.batch.begin(input)
  }

  protected override finish(): void {
    this.begin('unknown')
    const { graphs, sums, operators, measured, others } = this.counts
    const { contents, attributes } = holding(
      { graph: graphs, sum: sums, operator: operators, speed: measured },
      'no timings',
    )
    const facts = { ...this.perf.facts.attributes(), ...attributes, ...(others > 0 && { other_lines: others }) }
    this.batch.add({ kind: 'facts', contents, attributes: facts })
    this.batch.end(this.lines)
  }
}

/** The line before the rows of a graph, and the one after them (ggml-vulkan.cpp, vk_perf_logger::print_timings). */
const VULKAN_HEAD = 'Vulkan Timings:'
/** `Total time: 345438 us.` */
const VULKAN_TOTAL = /^Total time: [\d.e+]+ (?:us|ms)\.?\r?$/
/** `NAME: 97 x 376.031 us = 36475 us (0.0216152 GFLOPS/s)`; the sum is missing in versions before 2025-12. */
const ROW = /^(.+): (\d+) x ([\d.e+-]+) (us|ms)(?: = ([\d.e+-]+) (us|ms))?(?: \(([\d.e+-]+) GFLOPS\/s\))?\r?$/
const COUNT_MAX = 1e9
const NAME_MAX = 1000

const UNIT_NS = { us: 1e3, ms: 1e6 } as const

/** A row of the Vulkan logger: all operators of one kind in one graph; undefined for another line. */
function sumOf(text: string): DeviceOperator | undefined {
  const [, name, count, each, unit, sum, sumUnit, rate] = ROW.exec(text) ?? []
  if (name === undefined) return undefined
  const n = Number(count)
  const eachNs = Number(each) * UNIT_NS[unit as keyof typeof UNIT_NS]
  const timeNs = Math.round(sum === undefined ? eachNs * n : Number(sum) * UNIT_NS[sumUnit as keyof typeof UNIT_NS])
  if (!(n >= 1) || n > COUNT_MAX || !(timeNs >= 0) || !Number.isSafeInteger(timeNs)) return undefined
  const gflops = Number(rate ?? NaN)
  return {
    name: name.slice(0, NAME_MAX),
    timeNs,
    count: n,
    facts: { mean_ns: Math.round(eachNs), ...(gflops >= 0 && { gflop_per_s: gflops }) },
  }
}
