import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect } from '@jest/globals'
import { at, folder, start } from './helpers.ts'
import { canRecord, compile, script, unless, useProgram, WITH_LLAMA } from './record-helpers.ts'

/** `record --attach` of a process whose number is another one's by the time when bpftrace begins. */

const BUSY = `#include <unistd.h>
#include "stand-in.h"
int main(int argc, char ** argv) {
  struct llama_batch batch = {.n_tokens = argc > 0};
  for (;;) llama_decode((void *) argv, batch), usleep(5000);
}`
/** The number that the next process gets, less 1: for root, and not in each container. */
const LAST_PID = '/proc/sys/kernel/ns_last_pid'
const canChoose = () => {
  try {
    accessSync(LAST_PID, constants.W_OK)
    return process.getuid?.() === 0
  } catch {
    return false
  }
}

/** Stands in for bpftrace: ends the process, waits until another one has its number, and begins. */
const BPFTRACE = `#!/bin/bash
pid=$2
kill -9 $pid
while [ -e /proc/$pid ]; do sleep 0.01; done
for ((i = 0; i < 1000; i++)); do
  echo $((pid - 1)) > ${LAST_PID}
  sleep 1000 &
  [ $! = $pid ] && break
  kill -9 $!
done
echo 'g2p clock boot'
echo $! > "\${0%/*}/number"
wait`

useProgram()
beforeAll(() => {
  if (!canRecord) return
  compile('busy', BUSY, ...WITH_LLAMA())
  script('bpftrace', BPFTRACE)
})

unless(!canChoose())('another process that has got the number meanwhile is not recorded', async () => {
  const busy = spawn(at('busy'), { stdio: 'ignore' })
  await once(busy, 'spawn')
  while (!readFileSync(`/proc/${busy.pid}/maps`, 'utf8').includes('libllama')) await sleep(10)
  const env = { PATH: `${folder}:${process.env['PATH']}` }
  // Not in a thread: this process waits for the one that ends.
  const command = start(['record', '--attach', `${busy.pid}`, '--no-sched', '-q', '-o', 'run.g2p'], env)
  const [stderr, [code]] = await Promise.all([text(command.stderr), once(command, 'close')])
  expect(readFileSync(at('number'), 'utf8')).toBe(`${busy.pid}\n`)
  const why = 'the process ended before it was recorded, and another one has its number'
  expect([code, stderr.trim()]).toEqual([1, `error: attach ${busy.pid}: ${why}`])
  expect(existsSync(at('run.g2p'))).toBe(false)
})
