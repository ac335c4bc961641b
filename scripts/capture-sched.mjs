// Captures scripts/sched-workload.c with ftrace, trace-cmd, perf and bpftrace, in all their forms of text, for
// test/fixtures/{ftrace,perf-script,bpftrace}. Needs root, gcc and the tools; uses only its own tracing instance.
//
//   node scripts/capture-sched.mjs [<folder>]
//
// Names of other programs are replaced by names of the same length.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Anonymiser } from './capture-anonymise.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const out = process.argv[2] ?? join(here, '../test/fixtures')
const work = mkdtempSync(join(tmpdir(), 'capture-sched-'))
const workload = join(work, 'workload')
const INSTANCE = '/sys/kernel/tracing/instances/ggml2perfetto_capture'
/** The common form has a longer text than the others. */
const LONG_BYTES = 36 << 10
const SHORT_BYTES = 11 << 10
/** Lines of other threads before the first one that concerns the workload. */
const LINES_BEFORE = 12
const EVENTS = [
  'switch',
  'waking',
  'wakeup',
  'wakeup_new',
  'process_fork',
  'process_exec',
  'process_exit',
  'process_free',
  'migrate_task',
]
const anonymiser = new Anonymiser(readFileSync(join(here, 'sched-workload.c'), 'latin1'))

const run = (command, ...args) =>
  execFileSync(command, args, { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'], cwd: work })
const set = (file, value) => writeFileSync(join(INSTANCE, file), value)
const latin1 = (bytes) => Buffer.from(bytes).toString('latin1')

/** Stores whole lines of a text, anonymised. */
function keep(format, name, text, bytes = SHORT_BYTES) {
  const lines = text
    .split('\n')
    .filter((line) => !/ 0\.000000000: PERF_RECORD_(?!COMM: (?:swapper|rcu_|kworker))/.test(line))
  const first = lines.findIndex(
    (line) =>
      /^ .* \d+\.?\d+[^ ]{0,3}: +\S|^\S.*g2p \w+ \d|^\S.*\d\.\d{6}: /.test(line) && !line.includes('0.000000000: '),
  )
  const start = lines.findIndex((line) => line.includes('workload') && !line.startsWith('#'))
  const left = [...lines.slice(0, first), ...lines.slice(Math.max(first, start - LINES_BEFORE))].join('\n')
  const end = left.length <= bytes ? left.length : left.lastIndexOf('\n', bytes) + 1
  mkdirSync(join(out, format), { recursive: true })
  writeFileSync(
    join(out, format, name),
    Buffer.from(anonymiser.text(left.slice(0, end).replaceAll(work, '/tmp')), 'latin1'),
  )
}

/** Traces the workload in an instance, which is stopped when `use` is called; `use` may remove it. */
async function traced({ clock = 'mono', options = {}, kilobytes = 2048, mark = '' }, use) {
  mkdirSync(INSTANCE)
  try {
    set('trace_clock', clock)
    set('buffer_size_kb', `${kilobytes}`)
    for (const event of EVENTS) set(`events/sched/sched_${event}/enable`, '1')
    set('events/task/task_rename/enable', '1')
    set('events/irq/softirq_raise/enable', '1')
    for (const [option, value] of Object.entries(options)) set(`options/${option}`, `${value}`)
    const [mono, boot, real] = latin1(run(workload, 'clocks')).match(/\d+/g)
    set('tracing_on', '1')
    if (mark) set('trace_marker', mark.replace('CLOCKS', `mono=${mono} boot=${boot} real=${real}`))
    run(workload)
    set('tracing_on', '0')
    await use()
  } finally {
    if (existsSync(INSTANCE)) {
      for (const [option, value] of Object.entries(options)) set(`options/${option}`, `${1 - value}`)
      rmdirSync(INSTANCE)
    }
  }
}

const ftrace = (name, { pipe = false, bytes, ...options }) =>
  traced(options, () => keep('ftrace', name, latin1(pipe ? drained() : readFileSync(join(INSTANCE, 'trace'))), bytes))

/** The content of trace_pipe, which has no end. */
const drained = () => spawnSync('timeout', ['0.5', 'cat', join(INSTANCE, 'trace_pipe')], { maxBuffer: 1 << 28 }).stdout

/** trace-cmd extracts what was traced through tracefs, because its `record` also needs files of the function tracer. */
async function traceCmd() {
  const file = join(work, 'trace.dat')
  await traced({ clock: 'mono' }, () => {
    run('trace-cmd', 'extract', '-B', basename(INSTANCE), '-o', file)
  })
  const report = (name, bytes, ...args) => {
    const text = latin1(run('trace-cmd', 'report', ...args, '-i', file))
    keep('ftrace', name, text.replaceAll(/^\S+: (?= |\S)/gm, '').replace(/^\nBuffer: .*\n\n/, ''), bytes)
  }
  report('report.txt', LONG_BYTES)
  report('report-ns.txt', SHORT_BYTES, '-t')
  report('report-latency.txt', SHORT_BYTES, '-l')
  report('report-raw.txt', SHORT_BYTES, '-R')
  report('report-diff.txt', SHORT_BYTES, '--ts-diff')
}

function perf() {
  const file = join(work, 'perf.data')
  const events = [...EVENTS.map((event) => `sched:sched_${event}`), 'task:task_rename'].flatMap((event) => [
    '-e',
    event,
  ])
  const record = (...args) => run('perf', 'record', '-a', '-o', file, ...args, ...events, '--', workload)
  const script = (name, bytes, ...args) =>
    keep('perf-script', name, latin1(run('perf', 'script', ...args, '-i', file)), bytes)
  const fields = (...names) => ['-F', names.join(',')]
  record('-k', 'mono')
  script('mono.txt', LONG_BYTES, '--ns', '--header', ...fields('comm', 'pid', 'tid', 'cpu', 'time', 'event', 'trace'))
  script('default.txt', SHORT_BYTES)
  script('no-cpu.txt', SHORT_BYTES, ...fields('comm', 'tid', 'time', 'event', 'trace'))
  script('period.txt', SHORT_BYTES, ...fields('comm', 'tid', 'cpu', 'time', 'period', 'event', 'trace'))
  script('ip-sym.txt', SHORT_BYTES, ...fields('comm', 'tid', 'cpu', 'time', 'event', 'trace', 'ip', 'sym'))
  script('task-events.txt', SHORT_BYTES * 2, '--ns', '--show-task-events', '--show-lost-events')
  script('misc.txt', SHORT_BYTES, ...fields('comm', 'pid', 'tid', 'cpu', 'misc', 'time', 'event', 'trace'))
  script('reltime.txt', SHORT_BYTES, '--reltime', '--ns')
  script('deltatime.txt', SHORT_BYTES, '--deltatime')
  record()
  script('no-clock.txt', SHORT_BYTES, '--header')
  record('-k', 'mono', '-g')
  script('callgraph.txt', SHORT_BYTES * 2, '--header')
}

const BPFTRACE = `
BEGIN { printf("g2p clock boot\\n"); printf("g2p fact script capture-sched\\n"); }
tracepoint:sched:sched_switch {
  printf("g2p switch %llu %d %d %d %lld %d %d %-16s|%s\\n", nsecs, cpu, args->prev_pid, args->prev_prio,
    args->prev_state, args->next_pid, args->next_prio, args->prev_comm, args->next_comm);
}
tracepoint:sched:sched_waking {
  printf("g2p waking %llu %d %d %d %d %d -1 %s\\n", nsecs, cpu, tid, args->pid, args->prio, args->target_cpu, args->comm);
}
tracepoint:sched:sched_process_fork {
  printf("g2p fork %llu %d %d %d -1 %s\\n", nsecs, cpu, args->parent_pid, args->child_pid, str(args->child_comm));
}
tracepoint:sched:sched_process_exit { printf("g2p exit %llu %d %d %d %s\\n", nsecs, cpu, tid, pid, args->comm); }
tracepoint:task:task_rename { printf("g2p rename %llu %d %d %d %s\\n", nsecs, cpu, tid, pid, args->newcomm); }
`

function bpftrace() {
  const script = BPFTRACE.replace('str(args->child_comm)', 'comm')
  keep('bpftrace', 'sched.txt', latin1(run('bpftrace', '-e', script, '-c', `${workload} quiet`)), LONG_BYTES)
  keep(
    'bpftrace',
    'sched.jsonl',
    latin1(run('bpftrace', '-f', 'json', '-e', script, '-c', `${workload} quiet`)),
    SHORT_BYTES,
  )
}

try {
  run('gcc', '-O1', '-o', workload, join(here, 'sched-workload.c'), '-lpthread')
  await ftrace('trace.txt', { mark: 'g2p clock mono', bytes: LONG_BYTES })
  await ftrace('trace-local.txt', { clock: 'local', mark: 'clock_sync: CLOCKS', bytes: SHORT_BYTES })
  await ftrace('trace-boot.txt', { clock: 'boot' })
  await ftrace('trace-tgid.txt', { options: { 'record-tgid': 1 }, bytes: LONG_BYTES })
  await ftrace('trace-tgid-no-irq.txt', { options: { 'record-tgid': 1, 'irq-info': 0 } })
  await ftrace('trace-no-irq.txt', { options: { 'irq-info': 0 } })
  await ftrace('trace-latency.txt', { options: { 'latency-format': 1 } })
  await ftrace('trace-fields.txt', { options: { fields: 1 } })
  await ftrace('trace-overwritten.txt', { kilobytes: 4, clock: 'boot' })
  await ftrace('trace-pipe-lost.txt', { kilobytes: 4, pipe: true })
  await traceCmd()
  perf()
  bpftrace()
} finally {
  rmSync(work, { recursive: true })
}
