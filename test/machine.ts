import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** What tests need to know of the machine that they run on: none of it is the same everywhere. */

const readStatus = () => {
  try {
    return readFileSync('/proc/self/status', 'utf8')
  } catch {
    return '' // not Linux
  }
}

/** CPUs that this process may use: in a container not all, and 0 may be none of them. */
export const CPUS: readonly number[] = (/^Cpus_allowed_list:\t(.*)$/m.exec(readStatus())?.[1] ?? '0')
  .split(',')
  .flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number) as [number, number?]
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })

/** One of them, for what is to run beside a hog. */
export const CPU = CPUS[0]!

/** Arguments for `taskset` that keep a command on {@link CPU}. */
export const ON_CPU = ['-c', `${CPU}`]

export const hasTaskset = spawnSync('taskset', [...ON_CPU, 'true'], { stdio: 'ignore' }).status === 0

/** Hundredths of a second that the hypervisor has taken from all CPUs. */
const stolen = () => Number(/^cpu +(?:\d+ ){7}(\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? 0)

/** Returns what gives the time, in ns and at most, that the hypervisor has taken since: threads have such a CPU by the clock, and use no CPU time. */
export function stealing(): () => number {
  const before = stolen()
  return () => {
    const ticks = stolen() - before
    return ticks === 0 ? 0 : 1e7 * (ticks + 1)
  }
}

/** ggml then computes with AMX what it can, from a buffer of its own. */
export const HAS_AMX = existsSync('/proc/cpuinfo') && readFileSync('/proc/cpuinfo', 'utf8').includes('amx_int8')

/** A program that wants a CPU for itself, until it is killed or the test's process has ended. */
export const startHog = (cpu = CPU) =>
  spawn('taskset', ['-c', `${cpu}`, 'sh', '-c', `while kill -0 ${process.pid}; do :; done`], { stdio: 'ignore' })

/** bpftrace; where nobody has mounted tracefs yet, with a mount of its own, for tracepoints. */
export const BPFTRACE: readonly [string, ...string[]] = existsSync('/sys/kernel/tracing/events')
  ? ['bpftrace']
  : ['unshare', '-m', 'sh', '-c', 'mount -t tracefs tracefs /sys/kernel/tracing; exec bpftrace "$@"', 'sh']

/** Does the kernel let this user run bpftrace? Not in a container, though the program is there. */
export const canBpftrace = () =>
  process.getuid?.() === 0 && spawnSync('bpftrace', ['-e', 'BEGIN { exit(); }'], { stdio: 'ignore' }).status === 0
