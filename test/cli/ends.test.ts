import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { inLong } from '../long.ts'
import { canBpftrace } from '../machine.ts'
import { SERVER } from '../mcp/helpers.ts'
import { Command, isThere, type Mode, type Role, writtenBy } from './ends-helpers.ts'
import { at, CLI, folder, MOE, run } from './helpers.ts'
import { takePort } from './open-helpers.ts'
import { canRecord, canRun, compile, linuxTest, script, useProgram, WITH_LLAMA } from './record-helpers.ts'

/**
 * One way to end: of each command that owns processes, each of them is killed in turn, and the command gets each signal, also twice, and while all that
 * it owns is stopped. It ends, or continues and states what is missing; no process and no temporary file remains, and what was recorded can be read.
 * ENDS=1 prints how long each end takes.
 */

const BUSY = `#include <stdlib.h>
#include <unistd.h>
#include "stand-in.h"
int main(int argc, char ** argv) {
  struct llama_batch batch = {.n_tokens = argc > 0};
  for (;;) {
    volatile char * pages = malloc(1 << 20);
    for (int at = 0; at < 1 << 20; at += 4096) pages[at] = 1;
    free((void *) pages);
    llama_decode((void *) argv, batch);
    usleep(5000);
  }
}`
/** Logs to export: more than are exported before a test ends it. */
const LOGS = Array.from({ length: 100 }, (_, i) => `${String(i).padStart(2, '0')}.csv`)
/** A command that has begun has recorded something after that time, in ms. */
const RECORDS_MS = 300

useProgram()

/** A process to attach to. */
let attached: ChildProcess | undefined
beforeAll(() => {
  if (canRecord) compile('busy', BUSY, ...WITH_LLAMA())
  for (const folder of ['opener', 'slow', 'logs']) mkdirSync(at(folder))
  script('opener/xdg-open', '#!/bin/sh\nexec sleep 10000\n')
  script('slow/unshare', '#!/bin/sh\nexec sleep 10001\n')
  const moe = readFileSync(MOE, 'utf8')
  // Another number of empty lines makes another run.
  for (const [i, name] of LOGS.entries()) writeFileSync(at(`logs/${name}`), moe + '\n'.repeat(i))
  if (MODES['record --attach']![0]) attached = spawn(at('busy'), { stdio: 'ignore' })
})
afterAll(() => void attached?.kill('SIGKILL'))

const ended = (by: string) => new RegExp(`^${by} was ended by SIGKILL`, 'm')
/** The user's program, which is recorded. */
const PROGRAM: Role = { is: /^\/.*\/busy$/, ends: 'SIGKILL', says: ended('.*/busy'), isFree: true }
/** Sees the signals of the group. */
const WITNESS: Role = { is: /^sh -c for s in HUP/ }
/** Ends what it guards if the command is killed. */
const GUARD: Role = { is: /^sh -c trap '' HUP/ }
const EXITS = [130, 143] as const

/** Also before the file's folder is there: the names of roles are those of tests. */
const inFolder = (name: string) => join(folder ?? '', name)

const record = (option: string, logs: readonly string[] = [], roles: Mode['roles'] = {}): Mode => ({
  args: [CLI, 'record', option, '-o', 'run.ggtrace', inFolder('busy')],
  roles: { program: PROGRAM, witness: WITNESS, ...roles },
  hasBegun: (running) => running.has('run.ggtrace'),
  codes: ['SIGINT', 'SIGTERM'],
  logs: ['run.ggtrace', ...logs],
})

const perf: Role = {
  is: /^perf record/,
  says: /^no page faults by address: perf was ended by SIGKILL: run\.faults\.data has those before$/m,
}
const bpftrace: Role = {
  is: /^bpftrace/,
  ends: 1,
  says: /^error: bpftrace was ended by SIGKILL: run\.g2p has what was recorded before$/m,
}
const hasPerf = () => canRun('perf', 'record', '-q', '-e', 'page-faults', '-o', '/dev/null', 'true')

/** A call of the server's tool `record`. */
const CALL = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/call', params: { name: 'record', arguments: { program: 'busy', output: 'run.ggtrace' } } },
]

const MODES: Readonly<Record<string, readonly [isPossible: boolean, mode: () => Mode]>> = {
  record: [canRecord, () => record('--level=op')],
  'record --mem': [canRecord && hasPerf(), () => record('--mem', ['run.faults.data'], { perf })],
  'record --sched': [canRecord && process.getuid?.() === 0, () => record('--sched', ['run.sched.dat'])],
  'record --sched while tracefs is mounted': [
    canRecord && process.getuid?.() === 0 && !existsSync('/sys/kernel/tracing/events'),
    () => ({
      ...record('--sched'),
      env: { PATH: `${inFolder('slow')}:${process.env['PATH']}` },
      roles: {
        guard: GUARD,
        helper: {
          is: /^sleep 10001$/,
          says: /^no scheduler's events: .*: unshare was ended by SIGKILL;/m,
          code: 'SIGINT',
        },
      },
      hasBegun: () => true,
      codes: EXITS,
      logs: [],
    }),
  ],
  'record --attach': [
    canRecord && canBpftrace(),
    () => ({
      args: [CLI, 'record', '--attach', `${attached?.pid}`, '-o', 'run.g2p'],
      roles: { bpftrace, guard: GUARD },
      hasBegun: (_, found) => writtenBy(found.get('bpftrace')).includes('g2p token'),
      codes: [0, 0],
      logs: ['run.g2p', 'run.sched.dat'],
    }),
  ],
  'record --sweep': [
    canRecord,
    () => ({
      args: [CLI, 'record', '--sweep', 't=1,2', '-o', 'swept', '--', inFolder('busy'), '{t}'],
      roles: { program: { is: /^\/.*\/busy \d$/, ends: 1, says: ended('error: t=1:') }, guard: GUARD },
      hasBegun: (running) => running.has('swept/t1-1.ggtrace'),
      codes: EXITS,
      logs: ['swept/t1-1.ggtrace'],
    }),
  ],
  compare: [
    canRecord,
    () => ({
      args: [CLI, 'compare', '-o', 'runs', '--', ...['1', '2'].map((t) => `${inFolder('busy')} ${t}; exit $?`)],
      roles: {
        shell: { is: /^sh -c \/.*\/busy/, ends: 1, says: ended('error: .*') },
        program: { is: /^\/.*\/busy \d$/, ends: 1, says: /^error: .*: ended with exit code 137/m },
        guard: GUARD,
      },
      hasBegun: (running) => running.has('runs/a-warmup.ggtrace'),
      codes: EXITS,
      logs: [],
    }),
  ],
  export: [
    true,
    () => ({
      args: [CLI, 'export', ...LOGS.map((name) => inFolder(`logs/${name}`)), '--jobs', '1', '-o', 'dataset', '-q'],
      roles: {},
      hasBegun: (running) => running.has('dataset/trace'),
      codes: EXITS,
      logs: [],
    }),
  ],
  'export --jobs': [
    true,
    () => ({
      args: [CLI, 'export', ...LOGS.map((name) => inFolder(`logs/${name}`)), '--jobs', '2', '-o', 'dataset', '-q'],
      roles: { worker: { is: / --worker$/, says: /: the process that exported it was ended by SIGKILL$/m } },
      hasBegun: (running) => running.has('dataset/trace'),
      codes: EXITS,
      logs: [],
    }),
  ],
  open: [
    process.platform === 'linux',
    () => ({
      args: [CLI, 'open', MOE],
      env: { DISPLAY: ':0', PATH: `${inFolder('opener')}:${process.env['PATH']}` },
      roles: {
        opener: { is: /^sleep 10000$/, says: /^xdg-open was ended by SIGKILL; open the URL above/m, isFree: true },
      },
      hasBegun: ({ output }) => output.includes('Ctrl-C ends'),
      codes: EXITS,
      logs: [],
    }),
  ],
  'the MCP server': [
    canRecord,
    () => ({
      args: [SERVER, '--folder', '.', '--allow-record', '--program', inFolder('busy')],
      input: CALL,
      roles: {
        command: { is: /ggml2perfetto\.js record/, says: /recorded run\.ggtrace, exit code 137/ },
        program: { is: /^\/.*\/busy$/, says: /recorded run\.ggtrace, exit code 137/ },
        witness: WITNESS,
      },
      hasBegun: (running) => running.has('run.ggtrace'),
      codes: [0, 0],
      logs: ['run.ggtrace'],
    }),
  ],
}

/** What a command gets, and whether all that it owns is stopped before. */
const SIGNALS: readonly (readonly [name: string, signals: readonly NodeJS.Signals[], isStopped?: true])[] = [
  ['SIGINT', ['SIGINT']],
  ['SIGTERM', ['SIGTERM']],
  ['SIGINT, twice', ['SIGINT', 'SIGINT']],
  ['SIGINT while all that it owns is stopped', ['SIGINT'], true],
  ['SIGTERM while all that it owns is stopped', ['SIGTERM'], true],
  ['SIGKILL', ['SIGKILL']],
]
/** Those of `npm test`: the others take seconds each. */
const SHORT = [
  ...['record: program is killed', 'record: SIGINT, twice', 'record: SIGTERM while all that it owns is stopped'],
  ...['record --sweep: program is killed', 'record --sweep: SIGKILL', 'export --jobs: worker is killed'],
]

let turn: Server | undefined
let tests = 0
const commands: Command[] = []
const begun = async (name: string) => {
  if (name === 'open') turn = await takePort()
  const mode = MODES[name]![1]()
  const command = new Command(mode, at(`${tests++}`))
  commands.push(command)
  const found = await command.begins()
  await sleep(RECORDS_MS)
  return { mode, command, found }
}
afterEach(() => {
  turn?.close()
  for (const command of commands.splice(0)) command.remove()
})

const printTime = (what: string, startMs: number) => {
  if (process.env['ENDS']) console.log(`${what}: ${Math.round(performance.now() - startMs)} ms`)
}

/** What was recorded can be read, and nothing else is there. */
const isLeft = async (command: Command, logs: readonly string[], isKilled = false) => {
  await command.leavesNoProcess()
  if (!isKilled) expect(command.temporaryFiles()).toEqual([])
  for (const log of logs) {
    const { code, stderr } = run(['info', log], { cwd: command.folder })
    expect([log, code, stderr]).toEqual([log, 0, stderr])
  }
}

describe.each(Object.entries(MODES))('%s', (name, [isPossible, mode]) => {
  const possible = (what: string, run: () => Promise<void>) => {
    const declared = isPossible ? test : test.skip
    const declare = SHORT.includes(`${name}: ${what}`) ? declared : inLong(declared)
    declare(what, run)
  }

  for (const role of Object.keys(mode().roles))
    possible(`${role} is killed`, async () => {
      const { mode, command, found } = await begun(name)
      const { ends, says, code } = mode.roles[role]!
      const startMs = performance.now()
      command.send('SIGKILL', found.get(role)!)
      if (says) await command.says(says)
      if (ends === undefined) {
        printTime(`${name}, ${role} is killed`, startMs)
        await sleep(RECORDS_MS)
        command.send('SIGINT')
      }
      expect(await command.ends()).toBe(ends ?? code ?? mode.codes[0])
      if (ends !== undefined) printTime(`${name}, ${role} is killed`, startMs)
      await isLeft(command, mode.logs)
    })

  for (const [what, signals, isStopped] of SIGNALS)
    possible(what, async () => {
      const { mode, command, found } = await begun(name)
      if (isStopped) for (const pid of found.values()) command.send('SIGSTOP', pid)
      const startMs = performance.now()
      for (const signal of signals) command.send(signal)
      const [first] = signals as [NodeJS.Signals]
      const isKilled = first === 'SIGKILL'
      expect(await command.ends()).toBe(isKilled ? first : mode.codes[first === 'SIGINT' ? 0 : 1])
      printTime(`${name}, ${what}`, startMs)
      await isLeft(command, isKilled ? [] : mode.logs, isKilled)
    })
})

linuxTest('a program that ignores signals is killed by the third within 5 s', async () => {
  const line = 'trap "" INT TERM; while :; do sleep 0.1; done'
  const command = new Command(
    {
      args: [CLI, 'record', '-o', 'run.ggtrace', 'sh', '-c', line],
      roles: { program: { is: /^sh -c trap "" INT/ }, sleep: { is: /^sleep 0\.1$/ }, witness: WITNESS },
      hasBegun: () => true,
      codes: EXITS,
      logs: [],
    },
    at(`${tests++}`),
  )
  commands.push(command)
  const program = (await command.begins()).get('program')!
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    command.send(signal)
    await sleep(RECORDS_MS)
  }
  await command.says(/^sh still runs: 3 signals within 5 s kill it$/m)
  const again = setInterval(() => isThere(program) && command.send('SIGTERM'), RECORDS_MS)
  expect(await command.ends().finally(() => clearInterval(again))).toBe('SIGKILL')
  await isLeft(command, [])
})
