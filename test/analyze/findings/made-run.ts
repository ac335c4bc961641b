import { expect } from '@jest/globals'
import { findings } from '../../../lib/analysis.ts'
import type { Phase } from '../../../lib/core.ts'
import {
  type Analysis,
  analyze,
  convert,
  type EventInput,
  type Finding,
  type Input,
  type TraceEvent,
} from '../../../lib/index.ts'
import { type IssueCode, issueOf } from '../../../lib/model/issues.ts'
import type { FunctionPurpose } from '../../../lib/model/request-events.ts'
import { openTrace } from '../../../lib/node.ts'

/** One node of a call: how long each worker computes, in ns. All wait for the longest. */
export interface MadeStep {
  readonly name: string
  readonly op: string
  readonly ns: readonly number[]
  readonly majorFaults?: number
  /** Worker 0 is blocked so long at its start. */
  readonly blockedNs?: number
  /** It sleeps so long at the barrier after it. */
  readonly asleepNs?: number
  /** By worker, the part of its time at its end in which another thread has its CPU. */
  readonly lostNs?: readonly number[]
  /** Nobody computes so long before it: another thread has the CPU of worker 0. */
  readonly lostBeforeNs?: number
}

export interface MadeCall {
  readonly phase: Phase
  readonly tokens?: number
  readonly steps: readonly MadeStep[]
  /** After the last step, within the call. */
  readonly outsideNs?: number
  /** A function that runs for a quarter of that. */
  readonly outside?: FunctionPurpose
  /** Name of the backend of a second graph, and its time. */
  readonly backend?: readonly [name: string, ns: number]
  /** Major page faults of the process during it, and bytes that it read from disks. */
  readonly faults?: number
  readonly bytesRead?: number
  /** The threads of its workers; the first makes the call. */
  readonly threads?: readonly number[]
  /** Other workers begin so much later than the first one. */
  readonly lateNs?: number
  /** The CPUs on which its workers begin, and those on which they may run. */
  readonly cpus?: readonly number[]
  readonly allowed?: readonly string[]
  /** Other threads of the program that run all the time. */
  readonly others?: readonly number[]
}

interface MadeRun {
  readonly calls: readonly MadeCall[]
  readonly attributes?: Readonly<Record<string, string>>
  readonly cpu?: number
  readonly losses?: number
  readonly issues?: readonly IssueCode[]
  /** Between calls. */
  readonly gapNs?: number
}

/** Between calls. */
const GAP_NS = 1000
const START_NS = 1_000_000

/** A run with these calls, one after the other. */
export function madeRun({
  calls,
  attributes = {},
  cpu = -1,
  losses = 0,
  issues = [],
  gapNs = GAP_NS,
}: MadeRun): EventInput {
  return {
    name: 'made',
    *events(names) {
      const events: TraceEvent[] = [
        { kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes },
        { kind: 'counted', index: 0, name: names.id('major-faults'), unit: 'count' },
      ]
      const tensors = new Map<string, number>()
      let at = START_NS
      for (const [
        call,
        { phase, tokens = 1, steps, outsideNs = 0, outside, backend, faults, bytesRead = 0, ...made },
      ] of calls.entries()) {
        const start = at
        const { threads = [100, 101], lateNs = 0, cpus = [], allowed = [], others = [] } = made
        const tidOf = (worker: number) => threads[worker] ?? 100 + worker
        for (const [worker, cpu] of cpus.entries()) {
          const list = names.id(allowed[worker] ?? '')
          events.push({ kind: 'affinity', worker, tid: tidOf(worker), atNs: start, cpu, allowed: list })
        }
        for (const tid of others) events.push({ kind: 'state', tid, cpu: 0, state: 'running', atNs: start })
        const lose = (worker: number, fromNs: number, lostNs: number) => {
          if (lostNs === 0) return
          const state = { kind: 'state', tid: tidOf(worker), cpu: worker } as const
          events.push(
            { ...state, state: 'runnable', atNs: fromNs },
            { ...state, state: 'running', atNs: fromNs + lostNs },
          )
        }
        for (const { name, op, ns, majorFaults, blockedNs, asleepNs, lostNs = [], lostBeforeNs = 0 } of steps) {
          lose(0, at, lostBeforeNs)
          at += lostBeforeNs
          for (const [worker, lost] of lostNs.entries()) lose(worker, at + ns[worker]! - lost, lost)
          let tensor = tensors.get(name)
          if (tensor === undefined) {
            tensor = tensors.size
            tensors.set(name, tensor)
            const layer = Number(/-(\d+)$/.exec(name)?.[1] ?? -1)
            const where = { buffer: -1, offset: undefined, address: 0, structAddress: 0, inferred: 0 }
            events.push({
              ...{ kind: 'tensor', id: tensor, name: names.id(name), layer, op: names.id(op), type: names.id('f32') },
              ...{ ne: [64, 1, 1, 1], sources: [], sizeBytes: 256, ...where },
            })
          }
          const end = at + Math.max(...ns)
          const offs = [[at, blockedNs] as const, [at + ns[0]!, asleepNs] as const]
          for (const [atNs, offNs] of offs) {
            const state = { kind: 'state', tid: 100, cpu: 0 } as const
            if (offNs === undefined) continue
            events.push({ ...state, state: 'blocked', atNs }, { ...state, state: 'running', atNs: atNs + offNs })
          }
          for (const [worker, timeNs] of ns.entries()) {
            const counts = majorFaults === undefined ? {} : { counts: [worker === 0 ? majorFaults : 0] }
            const late = worker > 0 && at === start ? lateNs : 0
            const times = { startNs: at + late, endNs: at + timeNs, waitEndNs: end }
            const who = { tensor, worker, tid: tidOf(worker), cpu, call, experts: undefined, inferred: 0 }
            events.push({ kind: 'operator', ...who, ...times, ...counts })
          }
          at = end
        }
        const graph = { kind: 'graph', nodes: steps.length, call, inferred: 0 } as const
        events.push({ ...graph, startNs: start, endNs: at, backend: names.id('CPU') })
        if (backend) {
          events.push({ ...graph, startNs: at, endNs: at + backend[1], backend: names.id(backend[0]) })
          at += backend[1]
        }
        if (outside) {
          const nobody = { name: 0, tid: 100, context: 0, sequence: -1, output: -1, value: -1 }
          events.push({ kind: 'function', what: outside, ...nobody, startNs: at, endNs: at + outsideNs / 4 })
        }
        at += outsideNs
        const resources =
          faults === undefined
            ? {}
            : {
                resources: {
                  minorFaults: 0,
                  majorFaults: faults,
                  bytesRead,
                  processCpuNs: 0,
                  cpuNs: -1,
                  waitingNs: -1,
                },
              }
        events.push({
          kind: 'token',
          call,
          phase,
          tokens,
          startNs: start,
          endNs: at,
          tid: tidOf(0),
          inferred: 0,
          ...resources,
        })
        at += gapNs
      }
      const codes = [...issues, ...Array.from({ length: losses }, () => 'lost-records' as const)]
      for (const code of codes) events.push(issueOf(code, '1 record', { byte: 0 }, at))
      yield events
    },
  }
}

/** Decode calls that are all the same. */
export const decodes = (count: number, steps: readonly MadeStep[], more: Partial<MadeCall> = {}): MadeCall[] =>
  Array.from({ length: count }, () => ({ phase: 'decode' as const, steps, ...more }))

/** The findings of these inputs; each check in SQL gives the figure that its evidence has. */
export async function checkedFindings(inputs: Input | readonly Input[]): Promise<Finding[]> {
  const analysis = await analyze(inputs)
  await expectChecks(analysis, inputs)
  return findings(analysis)
}

/** Runs the SQL of all findings on the converted trace. */
export async function expectChecks({ findings }: Analysis, inputs: Input | readonly Input[]): Promise<void> {
  const trace = await openTrace(convert(inputs, { detail: 'full' }))
  try {
    for (const { rule, evidence, check } of findings) {
      const expected = evidence[check.evidence]
      expect([rule, typeof expected]).toEqual([rule, 'number'])
      if (check.sql === undefined) continue
      const found = Number(trace.query(check.sql).rows[0]![0])
      expect([rule, check.sql, found / Number(expected)]).toEqual([rule, check.sql, expect.closeTo(1, 6)])
    }
  } finally {
    trace.close()
  }
}
