import { join } from 'node:path'
import { describe, expect } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace, record } from '../../lib/node.ts'
import type { Cell } from '../../lib/sql.ts'
import { hasLlama, hostsProgram, LIB, model } from '../llama/testbed.ts'
import { CPU, hasTaskset, startHog } from '../machine.ts'
import { perfTest } from '../native/as-user.ts'
import { inFolder, readLog, useRecorder } from '../native/recording.ts'
import { canTrace } from './instance.ts'
import '../live.ts'

/** A real run beside a program that wants its CPU: recorded with the scheduler's events, and seen through SQL. */

const recorded = hasLlama() && hasTaskset && canTrace(`recorded-${process.pid}`) ? describe : describe.skip

/** Times on that CPU at which a worker could have run, and how much of them somebody else, or the hog, had it. */
const WAITING = `
  with own as (select ts, dur, cpu, utid, end_state, lead(ts) over (partition by utid order by ts) as next from sched_slice),
  waits as (select own.ts + own.dur as start, own.next as stop from own join thread using (utid)
    where tid in (WORKERS) and end_state in ('R', 'R+') and cpu = ${CPU} and own.next > own.ts + own.dur),
  others as (select ts, ts + dur as stop, tid from sched_slice join thread using (utid) where cpu = ${CPU} and dur > 0 and tid != 0)
  select sum(stop - start), sum((select sum(min(waits.stop, others.stop) - max(waits.start, others.ts)) from others
      where others.ts < waits.stop and others.stop > waits.start)),
    sum((select sum(min(waits.stop, others.stop) - max(waits.start, others.ts)) from others
      where others.ts < waits.stop and others.stop > waits.start and others.tid = HOG)) from waits`

/** The first waits of workers: how many, and how many name another time of who had the CPU longest than the slices of that CPU say. */
const TAKEN = `
  with waits as (select slice.id, slice.ts, slice.ts + slice.dur as stop, extract_arg(arg_set_id, 'debug.cpu') as cpu,
      extract_arg(arg_set_id, 'debug.taken_by_ns') as ns
    from slice join track on track.id = track_id where track.name glob 'worker *: state' and slice.name = 'runnable (preempted)'
      and slice.ts + slice.dur < (select max(ts + dur) from slice where category = 'operator') -- later, others are not drawn
    order by slice.ts limit 100),
  had as (select waits.id, ns, sum(min(stop, own.ts + own.dur) - max(waits.ts, own.ts)) as part
    from waits join sched_slice own on own.cpu = waits.cpu and own.dur > 0 and own.ts < stop and own.ts + own.dur > waits.ts
    group by waits.id, own.utid),
  most as (select ns, max(part) as part from had group by id)
  select count(*), sum(abs(part - ns) > 1000 or ns is null) from most`

recorded(
  'record --sched (needs linux-x64, cc, taskset, perf_event_open and the tracing files of the kernel: root)',
  () => {
    useRecorder()

    perfTest('the hog has the CPU while a worker waits for it, and running time is CPU time', async () => {
      const hog = startHog()
      const { path } = await model('tinyDense')
      const steps = ['load', 0, path, 'open', 0, 2, 'decode', 0, 2, 'times', 'decode', 0, 60, 'times', 'decode', 0, 2]
      const log = join(inFolder('.'), 'sched.ggtrace')
      const command = [await hostsProgram(), LIB, ...steps.map(String)] as [string, ...string[]]
      const result = await record({
        command,
        env: process.env,
        output: log,
        sched: true,
        stdio: ['ignore', 'ignore', 'inherit'],
      }).finally(() => hog.kill('SIGKILL'))
      expect([result.exitCode, result.sched?.problem, result.sched?.lost]).toEqual([0, undefined, 0])

      const own = await readLog(log)
      const workers = [...new Set(own.of('operator').map(({ tid }) => tid))]
      expect(workers).toHaveLength(2)
      const both = await openTrace(convert([inputOf(log), inputOf(result.sched!.path!)]))
      const alone = await openTrace(convert(inputOf(log)))
      const ask = (trace: typeof both, sql: string): Cell[] => [...trace.query(sql).rows[0]!]
      expect(both.problems()).toEqual([])
      const overlaps = `select count(*) from sched_slice a join sched_slice b on a.cpu = b.cpu and b.ts > a.ts and b.ts < a.ts + a.dur`
      expect(ask(both, overlaps)).toEqual([0])

      const sql = WAITING.replace('WORKERS', workers.join()).replace('HOG', `${hog.pid}`)
      const [waited, taken, byHog] = ask(both, sql).map(Number)
      expect(waited).toBeGreaterThan(5e6)
      expect(taken! / waited!).toBeGreaterThan(0.99)
      // On a machine that has nothing else to do it is all the hog's; beside other tests, a part.
      expect(byHog).toBeGreaterThan(0)
      const [waits, wrong] = ask(both, TAKEN).map(Number)
      expect([waits! > 0, wrong]).toEqual([true, 0])

      // Each worker's running time, from its first operator to its last: by switches, and by the states that need no root.
      const running = (worker: string) => `
      with own as (select min(ts) as start, max(ts + dur) as stop from slice join track t on t.id = track_id
        where category = 'operator' and t.name = '${worker}')
      select sum(min(ts + dur, stop) - max(ts, start)) from slice join track t on t.id = track_id, own
      where slice.name like 'running on CPU %' and t.name = '${worker}: state' and ts < stop and ts + dur > start`
      // Kernels that leave out switches of idle CPUs make running time by switches wrong: how often is in the trace.
      const [left] = ask(both, `select count(*) from slice where category = 'issue' and name = 'lost switches'`).map(
        Number,
      )
      if (left! > 0)
        console.log(`${left} switches are missing in what the kernel recorded: running time is not compared`)
      for (const worker of left! > 0 ? [] : ['worker 0', 'worker 1']) {
        const [bySwitches] = ask(both, running(worker)).map(Number)
        const [byStates] = ask(alone, running(worker)).map(Number)
        expect([worker, byStates! > 10e6, Math.abs(bySwitches! / byStates! - 1) < 0.02]).toEqual([worker, true, true])
      }
      both.close()
      alone.close()
    })
  },
)
