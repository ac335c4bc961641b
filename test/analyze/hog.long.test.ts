import { join } from 'node:path'
import { describe, expect } from '@jest/globals'
import type { SchedulingFigures } from '../../lib/analysis.ts'
import { analyze, convert } from '../../lib/index.ts'
import { convertFile, inputOf, openTrace, record } from '../../lib/node.ts'
import { hasLlama, hostsProgram, LIB, model } from '../llama/testbed.ts'
import { CPUS, hasTaskset, startHog } from '../machine.ts'
import { perfTest } from '../native/as-user.ts'
import { inFolder, readLog, useRecorder } from '../native/recording.ts'
import { canTrace } from '../sched/instance.ts'
import '../live.ts'

/** A real run beside a program that wants the CPU of a worker: what the analysis says, against SQL over the trace of the same logs. */

const recorded = hasLlama() && hasTaskset && canTrace(`hog-${process.pid}`) ? describe : describe.skip

/** By worker: time in decode calls in which its thread could run and had no CPU, by the lane below the worker. */
const LANES = `
  with calls as (select ts, ts + dur as stop from slice where category = 'token' and extract_arg(arg_set_id, 'debug.phase') = 'decode')
  select cast(substr(t.name, 8, 1) as int), sum(min(c.stop, s.ts + s.dur) - max(c.ts, s.ts)) from slice s
    join track t on t.id = s.track_id join calls c on c.ts < s.ts + s.dur and s.ts < c.stop
  where t.name glob 'worker *: state' and s.name = 'runnable (preempted)' group by 1`

/** The same of a thread, by trace_processor's own states. */
const THREAD_STATES = `
  with calls as (select ts, ts + dur as stop from slice where category = 'token' and extract_arg(arg_set_id, 'debug.phase') = 'decode')
  select sum(min(c.stop, s.ts + s.dur) - max(c.ts, s.ts)) from thread_state s join thread using (utid)
    join calls c on c.ts < s.ts + s.dur and s.ts < c.stop where tid = TID and state in ('R', 'R+') and s.waker_utid is null`

/** Time in which threads had the CPU of a worker that could run, in decode calls. */
const BY_HOGS = `
  with calls as (select ts, ts + dur as stop from slice where category = 'token' and extract_arg(arg_set_id, 'debug.phase') = 'decode'),
  waits as (select max(s.ts, c.ts) as ts, min(s.ts + s.dur, c.stop) as stop, extract_arg(s.arg_set_id, 'debug.cpu') as cpu
    from slice s join track t on t.id = s.track_id join calls c on c.ts < s.ts + s.dur and s.ts < c.stop
    where t.name glob 'worker *: state' and s.name = 'runnable (preempted)')
  select sum(min(w.stop, o.ts + o.dur) - max(w.ts, o.ts)) from waits w
    join sched_slice o on o.cpu = w.cpu and o.dur > 0 and o.ts < w.stop and o.ts + o.dur > w.ts join thread using (utid) where tid in (TIDS)`

const preemptedOf = (scheduling: SchedulingFigures) =>
  scheduling.workers
    .filter(({ phase }) => phase === 'decode')
    .filter(({ preempted_ns }) => preempted_ns > 0)
    .map(({ worker, preempted_ns }) => [worker, preempted_ns] as const)

recorded(
  'a run beside a hog (needs linux-x64, cc, taskset, perf_event_open and the tracing files of the kernel: root)',
  () => {
    useRecorder()

    perfTest('preempted time is that of the trace, with --sched also by whom', async () => {
      // On each CPU, or others that are busy decide which of them a worker meets.
      const hogs = CPUS.map(startHog)
      const { path } = await model('tinyDense')
      const steps = ['load', 0, path, 'open', 0, 2, 'decode', 0, 60]
      const log = join(inFolder('.'), 'hog.ggtrace')
      const result = await record({
        command: [await hostsProgram(), LIB, ...steps.map(String)] as [string, ...string[]],
        env: process.env,
        output: log,
        sched: true,
        stdio: ['ignore', 'ignore', 'inherit'],
      }).finally(() => {
        for (const hog of hogs) hog.kill('SIGKILL')
      })
      expect([result.exitCode, result.sched?.problem]).toEqual([0, undefined])
      const logs = { alone: [inputOf(log)], both: [inputOf(log), inputOf(result.sched!.path!)] }

      const alone = await analyze(logs.alone)
      const own = await openTrace(convert(logs.alone))
      expect([alone.scheduling!.source, alone.scheduling!.takers]).toEqual(['log', 'none'])
      expect(preemptedOf(alone.scheduling!)).toEqual(own.query(LANES).rows.map((row) => row.map(Number)))
      own.close()

      const both = await analyze(logs.both)
      const trace = await openTrace(convert(logs.both))
      const { summaries } = await convertFile([log, result.sched!.path!], inFolder('hog.pftrace'), { findings: true })
      const sentences = summaries[0]!.findings!.map(({ sentence }) => sentence)
      expect(sentences.join('\n')).toMatch(/worker \d was preempted \d+ % of decode: .*\bsh \d/)
      expect([both.scheduling!.source, both.scheduling!.takers]).toEqual(['both', 'all'])
      const preempted = preemptedOf(both.scheduling!)
      const drawn = new Map(trace.query(LANES).rows.map(([worker, ns]) => [Number(worker), Number(ns)]))
      expect([...drawn.keys()]).toEqual(preempted.map(([worker]) => worker))
      // Where a state of the log and a switch are some ns apart, each takes another one for the first.
      for (const [worker, ns] of preempted) expect(Math.abs(ns / drawn.get(worker)! - 1)).toBeLessThan(0.001)
      const byWorker = new Map((await readLog(log)).of('operator').map(({ worker, tid }) => [worker, tid]))
      for (const [worker, ns] of preempted) {
        const sql = THREAD_STATES.replace('TID', `${byWorker.get(worker)}`)
        expect(Math.abs(ns / Number(trace.query(sql).rows[0]![0]) - 1)).toBeLessThan(0.01)
      }
      const pids = new Set(hogs.map(({ pid }) => pid))
      const takers = both
        .scheduling!.workers.filter(({ phase }) => phase === 'decode')
        .flatMap(({ takers }) => takers.filter(({ tid }) => pids.has(tid)))
      expect(takers.length).toBeGreaterThan(0)
      const byHogs = Number(trace.query(BY_HOGS.replace('TIDS', [...pids].join())).rows[0]![0])
      trace.close()
      // Other threads of its name may be counted with it.
      const found = takers.reduce((sum, { time_ns }) => sum + time_ns, 0)
      expect(found / byHogs).toBeGreaterThan(0.99)
      if (takers.every(({ threads }) => threads === 1)) expect(found / byHogs).toBeLessThan(1.01)
      const decode = both.call_time.find(({ phase }) => phase === 'decode')!
      expect(decode.parts.reduce((sum, { time_ns }) => sum + time_ns, 0)).toBe(decode.time_ns)
      expect(decode.parts.map(({ what }) => what)).toContain('preempted')
    })
  },
)
