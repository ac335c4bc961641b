import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { eventsOf, Names } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { at, CLI, folder } from '../cli/helpers.ts'
import { canRecord, compile, useProgram, WITH_LLAMA } from '../cli/record-helpers.ts'
import { canTrace, newInstance } from './instance.ts'
import '../live.ts'

/**
 * One run, seen by ftrace (mono), perf (-k mono) and the recorder at once: the same fork and the same exit of a thread have the same
 * time. On a busy machine, whoever tells of an event may be held up between the event and its clock: what counts is the median and
 * nine of ten threads.
 */

const INSTANCE = `same-event-${process.pid}`
const TOGETHER_NS = 50_000
const THREADS = 60
const canPerf = () => spawnSync('perf', ['record', '-q', '-a', '-k', 'mono', '-o', '/dev/null', 'true']).status === 0
const seen = canRecord && canTrace(INSTANCE) && canPerf() ? describe : describe.skip

/** Threads one after the other, on one CPU: each takes it when its maker waits for it. */
const PROGRAM = `#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "stand-in.h"
static void * work(void * arg) { for (volatile int i = 0; i < 20000; i++); return arg; }
int main(void) {
  struct llama_batch batch = {.n_tokens = 1};
  cpu_set_t one; CPU_ZERO(&one); CPU_SET(sched_getcpu(), &one); sched_setaffinity(0, sizeof one, &one);
  llama_decode((void *) &batch, batch);
  for (int i = 0; i < ${THREADS}; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) return 1;
    usleep(500);
  }
  llama_decode((void *) &batch, batch);
  return 0;
}`

/** When threads began, first ran and ended, in ns of CLOCK_MONOTONIC, as an input tells. */
interface Lives {
  readonly born: Map<number, number>
  readonly ran: Map<number, number>
  readonly died: Map<number, number>
}

async function livesIn(path: string): Promise<Lives> {
  const lives: Lives = { born: new Map(), ran: new Map(), died: new Map() }
  const first = (times: Map<number, number>, tid: number, ns: number) => times.has(tid) || times.set(tid, ns)
  let originNs = 0
  for await (const batch of eventsOf(inputOf(path), new Names())) {
    for (const event of batch) {
      if (event.kind === 'input') {
        expect([path, event.clock]).toEqual([path, 'MONOTONIC'])
        originNs = Number(event.originNs)
      }
      if (event.kind === 'thread' && event.what === 'fork') lives.born.set(event.tid, originNs + event.atNs)
      if (event.kind === 'thread' && event.what === 'exit') lives.died.set(event.tid, originNs + event.atNs)
      if (event.kind === 'switch') first(lives.ran, event.nextTid, originNs + event.atNs)
      if (event.kind !== 'state') continue
      if (event.state === 'running') first(lives.ran, event.tid, originNs + event.atNs)
      if (event.state === 'ended') lives.died.set(event.tid, originNs + event.atNs)
    }
  }
  return lives
}

/** How far apart two inputs see the same of these threads, the nearest first. */
const apart = (tids: readonly number[], one: Map<number, number>, other: Map<number, number>) =>
  tids.map((tid) => Math.abs(one.get(tid)! - other.get(tid)!)).sort((a, b) => a - b)

function expectTogether(what: string, differences: readonly number[]): void {
  expect([what, differences.every(Number.isFinite)]).toEqual([what, true])
  const [median, most] = [0.5, 0.9].map((part) => differences[Math.floor(differences.length * part)]!)
  expect([what, median, median! < TOGETHER_NS]).toEqual([what, median, true])
  expect([what, most, most! < TOGETHER_NS]).toEqual([what, most, true])
}

seen('ftrace, perf and the recorder (needs linux-x64, cc, perf and the tracing files of the kernel: root)', () => {
  useProgram()

  test('see the same fork and the same exit within 50 µs', async () => {
    compile('threads', PROGRAM, '-pthread', ...WITH_LLAMA())
    const events = ['sched_process_fork', 'sched_process_exit', 'sched_switch'].map((event) => `sched:${event}`)
    const instance = newInstance(
      INSTANCE,
      events.map((event) => event.replace(':', '/')),
    )
    try {
      instance.set('tracing_on', 1)
      instance.set('trace_marker', 'g2p clock mono')
      const record = [process.execPath, CLI, 'record', '-o', at('run.ggtrace'), at('threads')]
      const perf = ['record', '-q', '-a', '-k', 'mono', '-m', '1024', '-e', events.join(), '-o', at('perf.data')]
      execFileSync('perf', [...perf, ...record], { cwd: folder, stdio: 'ignore' })
      instance.set('tracing_on', 0)
      writeFileSync(at('trace.txt'), instance.read('trace'))
    } finally {
      instance.remove()
    }
    const [ftrace, perf, recorder] = await Promise.all(
      ['trace.txt', 'perf.data', 'run.ggtrace'].map((name) => livesIn(at(name))),
    )
    const tids = [...recorder!.died.keys()].filter((tid) => ftrace!.born.has(tid) && perf!.born.has(tid))
    expect(tids.length).toBeGreaterThanOrEqual(THREADS)

    expectTogether('fork: ftrace, perf', apart(tids, ftrace!.born, perf!.born))
    expectTogether('exit: ftrace, perf', apart(tids, ftrace!.died, perf!.died))
    expectTogether('exit: ftrace, recorder', apart(tids, ftrace!.died, recorder!.died))
    expectTogether('exit: perf, recorder', apart(tids, perf!.died, recorder!.died))
    // The recorder tells of a thread from when it first has a CPU, at once where its CPU is free.
    expectTogether('first run: ftrace, recorder', apart(tids, ftrace!.ran, recorder!.ran))
    expectTogether('first run: perf, recorder', apart(tids, perf!.ran, recorder!.ran))
    for (const { born } of [ftrace!, perf!]) {
      expect(tids.every((tid) => recorder!.ran.get(tid)! > born.get(tid)! - 1000)).toBe(true)
      expect(apart(tids, born, recorder!.ran)[0]).toBeLessThan(TOGETHER_NS)
    }
  })
})
