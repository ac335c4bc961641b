import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { Readable } from 'node:stream'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Analysis } from '../../lib/analysis.ts'
import { convert, eventsOf, Names } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { findView } from '../../lib/sql.ts'
import { ensureLlama, hasLlama, LIB, model, runner } from '../llama/testbed.ts'
import { CPU, hasTaskset, ON_CPU, startHog } from '../machine.ts'
import { at, CLI, folder, names, run, runProcess, start } from './helpers.ts'
import { canRecord, canRun, compile, unless, useProgram } from './record-helpers.ts'
import '../live.ts'

/** `record --sched`: what the kernel tells of the whole machine, held against another buffer of the kernel's. */

const TRACING = '/sys/kernel/tracing'
/** The recorder's clock is computed from the processor's counter. */
const CLOCK_ERROR_NS = 1000
const INSTANCES = `${TRACING}/instances`

const canTrace = ((): boolean => {
  try {
    mkdirSync(`${INSTANCES}/test-${process.pid}`)
    rmdirSync(`${INSTANCES}/test-${process.pid}`)
    return true
  } catch {
    return false
  }
})()
const hasReport = canRun('sh', '-c', 'command -v trace-cmd')
const rootTest = unless(!canTrace)
const reportTest = unless(!canTrace || !hasReport)
const llamaTest = canTrace && hasReport && hasLlama() && hasTaskset ? test : test.skip
const namespaceTest = unless(!canTrace || !canRun('unshare', '--mount', 'true'))
const pidTest =
  canTrace && hasLlama() && hasTaskset && canRun('unshare', '-pf', '--mount-proc', 'true') ? test : test.skip
const nobodyTest = unless(!canTrace || process.getuid?.() !== 0 || !canRun('setpriv', '--version'))

/** Sends its parent SIGSTOP, wakes and sleeps two threads of one CPU many times, and lets the parent go on. */
const STORM = `#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  cpu_set_t one; CPU_ZERO(&one); CPU_SET(sched_getcpu(), &one); sched_setaffinity(0, sizeof one, &one);
  int there[2], back[2]; char byte = 0; pid_t parent = getppid();
  if (pipe(there) || pipe(back)) return 1;
  if (fork() == 0) { close(there[1]); while (read(there[0], &byte, 1) == 1) if (write(back[1], &byte, 1) != 1) return 1; return 0; }
  kill(parent, SIGSTOP);
  for (int i = 0; i < 60000; i++) if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
  kill(parent, SIGCONT);
  close(there[1]); wait(NULL); puts("stormed"); return 5;
}`

useProgram()

beforeAll(() => {
  if (canRecord) compile('storm', STORM)
})

/** Buffers of the kernel's that a recording has made; others may record at the same time. */
const ownedBy = (pid: number) =>
  readdirSync(INSTANCES).filter((name) => new RegExp(`^ggml2perfetto-${pid}(-|$)`).test(name))

/** Prints its number when it runs, and then does nothing. */
const SLEEPER = ['sh', '-c', 'echo $$; exec sleep 1000']

const report = (...args: readonly string[]) =>
  execFileSync('trace-cmd', ['report', ...args], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 30 })

/** Each CPU's switches, in order: `from>to`. */
function switchesByCpu(text: string, body: RegExp): Map<number, string[]> {
  const cpus = new Map<number, string[]>()
  for (const line of text.split('\n')) {
    const cpu = /\[(\d{3,})\]/.exec(line)?.[1]
    const found = line.includes('sched_switch:') ? body.exec(line) : undefined
    if (cpu === undefined || !found) continue
    const list = cpus.get(Number(cpu)) ?? []
    cpus.set(Number(cpu), list)
    list.push(`${found[1]}>${found[2]}`)
  }
  return cpus
}

/** Names of the track that `open` adds. */
async function slowOperators(logs: readonly string[]): Promise<unknown[]> {
  const pieces: Uint8Array[] = []
  for await (const piece of convert(logs.map((log) => inputOf(at(log))))) pieces.push(piece)
  const { commands } = await findView(Readable.from(pieces))
  const trace = await openTrace(Buffer.concat(pieces))
  try {
    const { args } = commands.find(({ id }) => id === 'dev.perfetto.AddDebugSliceTrack')!
    return trace.query(args[0]!).rows.map((row) => row.at(-1))
  } finally {
    trace.close()
  }
}

describe('what the machine did', () => {
  /** Another buffer of the kernel's, which begins before and ends after. Returns each CPU's switches. */
  async function witness(use: () => Promise<void>): Promise<Map<number, string[]>> {
    const own = `${INSTANCES}/witness-${process.pid}`
    mkdirSync(own)
    try {
      writeFileSync(`${own}/buffer_size_kb`, '32768')
      writeFileSync(`${own}/events/sched/sched_switch/enable`, '1')
      await use()
      writeFileSync(`${own}/tracing_on`, '0')
      const text = readFileSync(`${own}/trace`, 'latin1')
      expect(text).toMatch(/entries-in-buffer\/entries-written: (\d+)\/\1 /)
      return switchesByCpu(text, /prev_pid=(\d+) .* next_pid=(\d+)/)
    } finally {
      rmdirSync(own)
    }
  }

  llamaTest(
    'is in a trace.dat: llama.cpp beside a hog, each switch of each CPU (needs root, trace-cmd, linux-x64, cc, taskset)',
    async () => {
      await ensureLlama()
      const { path } = await model('tinyDense')
      const program = await runner()
      const args = ['--lib', LIB, '--model', path, '--threads', '1', '--decode', '60']
      const plain = spawnSync(program, args, { encoding: 'utf8' })
      const hog = startHog()
      let stderr = ''
      const seen = await witness(async () => {
        const recorded = run(['record', '--sched', '-o', 'llama.ggtrace', '--', 'taskset', ...ON_CPU, program, ...args])
        stderr = recorded.stderr
        const said = (stdout: string) => stdout.replace(/"pid":\d+/, '')
        expect([recorded.code, said(recorded.stdout)]).toEqual([plain.status, said(plain.stdout)])
      }).finally(() => hog.kill('SIGKILL'))
      expect(stderr).toMatch(/\nwrote llama\.sched\.dat \(.*\): .* scheduler events on \d+ CPUs?\n/)
      expect(stderr).toMatch(/\nnext: ggml2perfetto llama\.ggtrace llama\.sched\.dat\n$/)
      expect(stderr).toMatch(/\nwhy: (.*\n +)*worker 0 was preempted \d+ % of decode: .*\bsh \d+/)

      const text = report('llama.sched.dat')
      const told = Number(/: ([\d ]+) scheduler events/.exec(stderr)![1]!.replaceAll(' ', ''))
      expect(text.split('\n').filter((line) => /\[\d{3}\]/.test(line)).length).toBe(told)
      const found = switchesByCpu(text, /:(\d+) \[-?\d+\] \S+ ==> .*:(\d+) \[-?\d+\]$/)
      expect([...found.keys()].sort()).toEqual([...seen.keys()].sort())
      for (const [cpu, list] of found) {
        expect(list.length).toBeGreaterThan(10)
        expect([cpu, ` ${seen.get(cpu)!.join(' ')} `.includes(` ${list.join(' ')} `)]).toEqual([cpu, true])
      }
      // The clock is the log's: when a call begins and when it ends, its thread is the one that runs on its CPU.
      const times: number[] = []
      let [origin, caller] = [0, 0]
      for await (const batch of eventsOf(inputOf(at('llama.ggtrace')), new Names())) {
        for (const event of batch) {
          if (event.kind === 'input') origin = Number(event.originNs)
          if (event.kind === 'token') {
            caller = event.tid
            times.push(event.startNs + origin, event.endNs + origin)
          }
        }
      }
      expect(times.length).toBe(2 * 61)
      const turnOnCpu = new RegExp(
        String.raw`\[${`${CPU}`.padStart(3, '0')}\] +(\d+)\.(\d{9}): sched_switch: .*:(\d+) \[-?\d+\] \S+ ==> .*:(\d+) \[`,
      )
      const turns = report('-t', 'llama.sched.dat')
        .split('\n')
        .map((line) => turnOnCpu.exec(line))
        .filter((turn) => turn !== null)
        .map(([, s, ns, prev, next]) => ({ at: Number(s) * 1e9 + Number(ns), prev: Number(prev), next: Number(next) }))
      // This machine's kernel leaves switches out now and then: who leaves the CPU tells of them.
      const running = (ns: number) => {
        const turn = turns.findLastIndex(({ at }) => at <= ns)
        return [turns[turn]?.next, turns[turn + 1]?.prev]
      }
      // The log's clock may be off by a microsecond.
      const isOn = (ns: number) => [ns - CLOCK_ERROR_NS, ns, ns + CLOCK_ERROR_NS].flatMap(running).includes(caller)
      expect(times.filter((ns) => !isOn(ns))).toEqual([])
      expect(turns.some(({ at, next }) => next === hog.pid && at > times[0]! && at < times.at(-1)!)).toBe(true)
      expect(await slowOperators(['llama.ggtrace', 'llama.sched.dat'])).toContainEqual(
        expect.stringMatching(/ ×\d+ · preempted \d+ % by .+ \d+$/), // by the hog, or by what else runs here
      )
    },
  )

  pidTest('finds the threads of a program in a PID namespace (needs root, unshare, taskset, linux-x64)', async () => {
    await ensureLlama()
    const { path } = await model('tinyDense')
    const program = [await runner(), '--lib', LIB, '--model', path, '--threads', '2', '--decode', '12']
    // Two workers on one CPU: each takes it from the other.
    const inNamespace = ['unshare', '-pf', '--mount-proc', 'taskset', ...ON_CPU, ...program]
    const { code, stderr } = await runProcess(['record', '--sched', '-o', 'pids.ggtrace', '--', ...inNamespace])
    expect([code, stderr]).toEqual([0, expect.stringContaining('wrote pids.sched.dat')])
    const { stdout } = run(['stats', 'pids.ggtrace', 'pids.sched.dat', '--json'])
    const takers = (JSON.parse(stdout) as Analysis).scheduling!.workers.flatMap(({ takers }) => takers)
    const isProgram = ({ comm }: { comm: string }) => comm === basename(program[0]!).slice(0, 15)
    expect(takers.some((taker) => isProgram(taker) && taker.is_own)).toBe(true)
    const found = run(['pids.ggtrace', 'pids.sched.dat', '-o', 'pids.pftrace']).stdout
    expect(found).toMatch(/ pid:\[\d+\]: (\d+) of \1 threads of the log found/)
  })

  reportTest('has its losses counted, where it went on faster than it was read (needs root, trace-cmd)', () => {
    const { code, stdout, stderr } = run([
      'record',
      '--sched',
      '--sched-buffer',
      '4M',
      '-q',
      '-o',
      'storm.ggtrace',
      './storm',
    ])
    expect([code, stdout]).toEqual([5, 'stormed\n'])
    const lost = Number(/storm\.sched\.dat: ([\d ]+) events lost/.exec(stderr)?.[1]?.replaceAll(' ', ''))
    expect(lost).toBeGreaterThan(1000)
    expect(stderr).toMatch(/; record with larger buffers: --sched-buffer 16M\n/)
    const overrun = [...report('--stat', 'storm.sched.dat').matchAll(/^overrun: (\d+)$/gm)]
    expect(overrun.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(lost)
    expect(report('storm.sched.dat')).toMatch(/EVENTS (DROPPED|LOST)/i)
  })
})

describe('what stays', () => {
  rootTest('is one file: it replaces an older one, and nothing is left in the kernel or the folder', () => {
    writeFileSync(at('once.sched.dat'), 'older')
    const before = names()
    const command = [
      'record',
      '--sched',
      '--no-children',
      '-o',
      'once.ggtrace',
      '--',
      'sh',
      '-c',
      './caller >/dev/null; exit 3',
    ]
    const { code, stdout, pid } = run(command)
    expect([code, stdout, names(), ownedBy(pid)]).toEqual([3, '', before, []])
    expect(readFileSync(at('once.sched.dat')).subarray(0, 12).toString('latin1')).toBe('\x17\x08Dtracing6\0')
  })

  rootTest('with the log beside it as it is without, one for all children, named in quotes where it must', () => {
    const { code, stdout, stderr } = run(['record', '--sched', '-o', 'a run.log', 'sh', '-c', './caller; ./caller'])
    expect([code, stdout]).toEqual([0, 'said\nsaid\n'])
    expect(stderr).toMatch(/\nnext: ggml2perfetto 'a run\.log' 'a run\.log\.\d+' 'a run\.log\.sched\.dat'\n$/)
    expect(names().filter((name) => name.endsWith('.sched.dat') && name.startsWith('a run'))).toHaveLength(1)
    for (const log of names().filter((name) => /^a run\.log(\.\d+)?$/.test(name)))
      expect(run(['info', log]).stdout).toMatch(/2 calls|decode .*2/)
  })

  rootTest('after a signal: the file, and nothing in the kernel', async () => {
    const child = start(['record', '--sched', '-o', 'signal.ggtrace', ...SLEEPER])
    await once(child.stdout, 'data')
    expect(ownedBy(child.pid!)).toHaveLength(1)
    const ended = new Promise((resolve) => child.on('exit', (_, signal) => resolve(signal)))
    child.kill('SIGTERM')
    expect([await ended, ownedBy(child.pid!), existsSync(at('signal.sched.dat'))]).toEqual(['SIGTERM', [], true])
  })

  rootTest('after kill -9: a buffer that is stopped and empty, which the next one removes', async () => {
    const child = start(['record', '--sched', '-o', 'killed.ggtrace', ...SLEEPER])
    const files = () => names().filter((name) => /killed/.test(name))
    const [sleeper] = await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'exit')
    process.kill(Number(sleeper), 'SIGKILL')
    const [stale] = ownedBy(child.pid!)
    expect(stale).toBeDefined()
    expect(readFileSync(join(INSTANCES, stale!, 'tracing_on'), 'utf8')).toBe('0\n')
    expect(files()).toEqual([])
    // One that belongs to a living process stays.
    const living = join(INSTANCES, `ggml2perfetto-${process.pid}`)
    mkdirSync(living)
    try {
      expect(run(['record', '--sched', '-o', 'next.ggtrace', 'true']).code).toBe(0)
      expect([ownedBy(child.pid!), existsSync(living)]).toEqual([[], true])
    } finally {
      rmdirSync(living)
    }
  })

  rootTest('where the program cannot be started: nothing', () => {
    writeFileSync(at('data'), Buffer.from([1, 2, 0, 3]))
    chmodSync(at('data'), 0o755)
    const before = names()
    const { code, pid } = run(['record', '--sched', '-o', 'none.ggtrace', './data'])
    expect([code, names(), ownedBy(pid)]).toEqual([126, before, []])
  })
})

describe('who may not', () => {
  /** Records a program that calls ggml as `before` changes us, and wants its log as ever. */
  const without = (name: string, ...before: readonly string[]) => {
    mkdirSync(at(name), { recursive: true })
    chmodSync(folder, 0o755)
    cpSync(at('cache'), at(`${name}/cache`), { recursive: true })
    if (before.includes('setpriv')) execFileSync('chown', ['-R', '65534:65534', at(name)])
    const args = ['record', '--sched', '-o', `${name}/run.ggtrace`, './caller']
    const { status, stdout, stderr } = spawnSync(before[0]!, [...before.slice(1), process.execPath, CLI, ...args], {
      cwd: folder,
      env: { ...process.env, XDG_CACHE_HOME: at(`${name}/cache`) },
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, 'said\n'])
    expect(stderr).toContain("; only the program's own thread states are recorded\n")
    expect(stderr).toMatch(new RegExp(`\\nnext: ggml2perfetto ${name}/run\\.ggtrace\\n$`))
    expect(readdirSync(at(name)).sort()).toEqual(['cache', 'run.ggtrace'])
    expect(statSync(at(`${name}/run.ggtrace`)).size).toBeGreaterThan(100)
    return /^no scheduler's events: .*(\nhint: .*)?/m.exec(stderr)?.[0]
  }

  nobodyTest('gets a log without, and a hint (needs root, to be somebody else)', () => {
    const told = without('nobody', ...NOBODY)
    expect(told).toMatch(/instances\/ggml2perfetto-\d+: permission denied: .* for root; .*\nhint: sudo ggml2perfetto /)
  })

  const inNamespace = (line: string) => ['unshare', '--mount', 'sh', '-c', `${line} && exec "$0" "$@"`]
  const UNMOUNT = `umount -R ${TRACING}; { umount -R /sys/kernel/debug 2>/dev/null; true; }`
  const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

  nobodyTest('and there is no tracefs, is told so (needs root, unshare, to be somebody else)', () => {
    const told = without('unmounted', ...inNamespace(UNMOUNT), ...NOBODY)
    expect(told).toMatch(/tracefs is not mounted here, and cannot be: unshare: .*; .*\nhint: sudo mount/)
  })

  namespaceTest('as root mounts tracefs for itself where there is none; nothing stays (needs root and unshare)', () => {
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
    const [unshare, ...args] = inNamespace(UNMOUNT)
    const after = '"$@"; echo "left: $(grep -c tracefs /proc/self/mounts) $(ls /sys/kernel/tracing | wc -l)"'
    const recorded = [process.execPath, CLI, 'record', '--sched', '-o', 'own-mount.ggtrace', './caller']
    const { stdout, stderr } = spawnSync(unshare!, [...args, 'sh', '-c', after, 'sh', ...recorded], {
      cwd: folder,
      env: process.env,
      encoding: 'utf8',
    })
    expect(stdout).toBe('said\nleft: 0 0\n')
    expect(stderr).toMatch(/\nwrote own-mount\.sched\.dat \(.*\): .* scheduler events on \d+ CPUs?\n/)
    expect(readFileSync('/proc/self/mounts', 'utf8')).toBe(mounts)
  })

  namespaceTest('is told where tracefs is read-only (needs root and unshare)', () => {
    const readOnly = without('read-only', ...inNamespace(`mount -o remount,bind,ro ${TRACING}`))
    expect(readOnly).toMatch(/tracefs is mounted read-only/)
  })
})

describe('who may', () => {
  const other = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  nobodyTest(
    'gives the program to another user, who is given the library where he can reach it, for the time (needs root)',
    () => {
      mkdirSync(at('of-root'), { mode: 0o700 })
      cpSync(at('cache'), at('of-root/cache'), { recursive: true })
      mkdirSync(at('of-other'))
      chmodSync(folder, 0o755)
      chmodSync(at('of-other'), 0o777)
      mkdirSync(at('tmp'))
      const env = { XDG_CACHE_HOME: at('of-root/cache'), TMPDIR: at('tmp') }
      const { code, stdout, stderr } = run(
        ['record', '-q', '--sched', '-o', 'of-other/run.ggtrace', ...other, './caller'],
        {
          env,
        },
      )
      expect([code, stdout, stderr]).toEqual([0, 'said\n', ''])
      expect(statSync(at('of-other/run.ggtrace')).uid).toBe(65534)
      expect(readdirSync(at('tmp'))).toEqual([])
      // Where TMPDIR is for root only, the library is in /tmp for that time.
      chmodSync(at('tmp'), 0o700)
      const closed = run(['record', '-q', '-o', 'of-other/2.ggtrace', ...other, './caller'], { env })
      expect(closed).toMatchObject({ code: 0, stdout: 'said\n', stderr: '' })
      expect(statSync(at('of-other/2.ggtrace')).uid).toBe(65534)
    },
  )
})

describe('the processes of threads', () => {
  rootTest('are recorded, also of those that began earlier: the recorder itself and its threads', async () => {
    const { code, pid } = runProcess(['record', '--sched', '-q', '-o', 'own.ggtrace', '--', 'sleep', '0.2'])
    expect(code).toBe(0)
    const trace = await openTrace(convert(inputOf(at('own.sched.dat'))))
    const { rows } = trace.query(`select count(*), sum(tid = ${pid}), max(p.name)
      from thread join process p using (upid) where pid = ${pid} and utid in (select utid from sched)`)
    trace.close()
    const [[threads, main, name]] = rows as [[number, number, string]]
    expect([threads > 1, main, name]).toEqual([true, 1, 'node'])
  })
})
