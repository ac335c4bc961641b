import { BlockKind, checksum, HEADER_BYTES, Header, MAGIC, NONE, RecordType } from '../../lib/log/ggtrace-layout.ts'
import { plainBytes } from '../line/support.ts'
import {
  altered,
  begun,
  blocksOf,
  everyRecord,
  fieldsOf,
  joined,
  killed,
  lossy,
  runCalls,
  tiny,
} from '../read/ggtrace-logs.ts'
import { fixture, type Provocations, textInput } from './provoked.ts'

/** As provoked.ts, for codes of ggtrace, servers' logs, ProfInfer and recordings of the kernel. */

const log = (source: Uint8Array) => ({ name: 'log', source })
/** The blocks of a log of one worker with many operators: run, definitions, events, end. */
function blocks() {
  const writer = begun({}, 512)
  writer.type(0, 'f32')
  const tensor = writer.tensor({ name: 'x-0' })
  const thread = writer.thread(9, 0)
  for (let n = 0; n < 100; n++) thread.operator({ tensor, startNs: 100 * n, endNs: 100 * n + 50 })
  writer.end(30_000)
  const all = blocksOf(writer.take())
  const of = (kind: number) => all.filter((block) => fieldsOf(block).kind === kind)
  return { run: of(1).slice(0, 1), definitions: of(2), events: of(3), end: of(1).slice(1) }
}
/** A log whose blocks of events are others. */
function ofEvents(change: (events: Uint8Array[]) => Uint8Array[]) {
  const { run, definitions, events, end } = blocks()
  return log(joined([...run, ...definitions, ...change(events), ...end]))
}
const changed = (bytes: Uint8Array, change: (bytes: Uint8Array) => void) => {
  const copy = bytes.slice()
  change(copy)
  return log(copy)
}
const withoutDefinitions = () => {
  const { run, events, end } = blocks()
  return log(joined([...run, ...events, ...end]))
}

/** A log that lost records for this reason. */
function lostFor(why: string) {
  const writer = begun()
  const name = writer.name(why)
  writer.thread(9, 0).loss(50, 3, name)
  writer.end(30_000)
  return writer.take()
}

/** A log that had no room for 5 records, for this reason. */
function full(why: number) {
  const { run, definitions, events, end } = blocks()
  const alter = (view: DataView) => {
    view.setUint16(HEADER_BYTES + 2, 32, true)
    view.setBigUint64(HEADER_BYTES + 20, 5n, true)
    view.setUint32(HEADER_BYTES + 28, why, true)
  }
  return log(joined([...run, ...definitions, ...events, ...end.map((block) => altered(block, alter))]))
}

/** A log of slow calls that has none, and left out 7. */
function ofSlowCalls() {
  const { run, definitions, events, end } = blocks()
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + 48))
  view.setUint32(0, MAGIC, true)
  view.setUint32(Header.size, view.byteLength, true)
  view.setUint16(Header.kind, BlockKind.Ring, true)
  view.setUint32(Header.checksum, checksum(view, 0, HEADER_BYTES), true)
  for (const [at, value] of [200_000_000n, 7n, 70_000n].entries())
    view.setBigUint64(HEADER_BYTES + 8 * (at + 1), value, true)
  return log(joined([new Uint8Array(view.buffer), ...run, ...definitions, ...events, ...end]))
}

const probes = (...rows: string[]) => textInput(`ts,type,pid\n${rows.join('\n')}\n`)
const waking = (i: number) => ` bash-1 [000] d..2. ${i + 1}.000000: sched_waking: comm=a pid=2 prio=120 target_cpu=000`
/** The first page of local-v6.dat, and its count of bytes of events. */
const COMMIT = 0xe000 + 8
const traceDat = (name: string) => plainBytes(`trace-dat/${name}.dat.gz`)
const perfData = (name: string) => plainBytes(`perf-data/${name}.data.gz`)

/** A recording whose events are called otherwise. */
function ofOthers() {
  const text = Buffer.from(traceDat('mono-v6')).toString('latin1')
  const renamed = text.replaceAll('name: sched_', 'name: other_').replaceAll('name: task_', 'name: else_')
  return log(new Uint8Array(Buffer.from(renamed, 'latin1')))
}

/** A recording with a buffer whose clock has another name. */
function ofTwoClocks() {
  const bytes = traceDat('instance-v6').slice()
  const cpus = Buffer.from(bytes).lastIndexOf('flyrecord\0') + 10
  bytes[cpus + 2 * 16 + 8] = 0x78
  return log(bytes)
}

/** A run of some calls, whose log has a fact. */
function withFact(key: string, value: string) {
  const writer = begun({ [key]: value })
  runCalls(writer, [5, 1, 1], 1)
  writer.end(1e6)
  return log(writer.take())
}

const LAUNCH = 'slot launch_slot_: id  0 | task 0 | processing task, is_child = 0\n'

export const PROVOKED_BY_KERNEL: Provocations = {
  'short-record': () =>
    ofEvents(([first, ...others]) => [
      altered(first!, (view) => view.setUint16(48, RecordType.Token, true)),
      ...others,
    ]),
  'lost-records': () => log(everyRecord()),
  'dropped-records': () => log(everyRecord()),
  'lost-states': () => log(lostFor('thread states')),
  'lost-gpu-work': () => log(lostFor('work of a GPU: its times could not be read')),
  'gpu-work-without-launch': () => withFact('gpu.without_launch', '3'),
  'states-end': () => withFact('states.end', 'the rest may be missing: /proc/self cannot be read any more'),
  'left-out-functions': () => withFact('functions.left_out', '76 conversions of a token to text'),
  'unseen-calls': () => withFact('program.copies', 'llama_decode'),
  'unseen-pages': () => withFact('numa.missing', 'pages: move_pages(2) is not permitted'),
  'clock-corrected': () => withFact('clock.error_ns', '250000'),
  'lost-counters': () => log(lostFor('counters of this thread: not permitted')),
  'log-full': () => full(1),
  'process-limit': () => full(2),
  'disk-full': () => full(3),
  'log-cut': () => full(5),
  'op-table-unclear': () => fixture('tensor-trace/ambiguous-ops.bin'),

  'damaged-block': () => changed(tiny(), (bytes) => (bytes[bytes.length >> 1]! ^= 0x10)),
  'damaged-bytes': () => log(lossy()),
  'torn-block': () => log(tiny().subarray(0, -20)),
  'open-blocks': () => log(joined([killed(), ...blocks().end])),
  'run-without-end': () => log(killed()),
  'lost-blocks': () => log(lossy()),
  'repeated-block': () => ofEvents((events) => [...events, events[0]!]),
  'block-out-of-order': () => ofEvents(([a, b, ...others]) => [b!, a!, ...others]),
  'missing-records': () => ofEvents((events) => events.slice(0, -1)),
  'lost-definitions': withoutDefinitions,
  'undefined-id': withoutDefinitions,
  'operator-without-worker': () =>
    ofEvents((events) => events.map((block) => altered(block, (view) => view.setUint32(Header.worker, NONE, true)))),
  'unknown-version': () => log(begun({ 'format.version': '9' }).takeKilled()),
  'fast-calls': () => ofSlowCalls(),
  'program-clock': () => log(begun({ 'clock.program': 'libfaketime.so.1' }).takeKilled()),
  'recorded-less': () => log(everyRecord()),

  'lines-without-time': () => textInput(LAUNCH),
  'server-started-again': () => textInput(`0.09.000.000 I ${LAUNCH}0.01.000.000 I ${LAUNCH}`),
  'request-without-end': () =>
    textInput(
      Array.from({ length: 257 }, (_, i) => LAUNCH.replace(/id +\d+ \| task \d+/, `id ${i} | task ${i}`)).join(''),
    ),
  'readings-without-time': () => fixture('power/nvidia-dmon-no-times.txt'),
  'gpus-by-order': () =>
    textInput(
      'timestamp, power.draw [W]\n2025/04/24 15:58:57.879, 21.76 W\n2025/04/24 15:58:57.879, 31.02 W\n2025/04/24 15:58:58.879, 22.00 W\n2025/04/24 15:58:58.880, 30.50 W\n',
    ),
  'no-readings': () => textInput('timestamp, power.draw [W]\n'),
  'no-tasks': () => textInput('0.00.001.645 I srv  llama_server: initializing ...\n'),

  'unknown-probe': () => probes('5,10,1', '6,77,1', '7,15,1'),
  'log-ends-in-call': () => probes('5,10,1'),

  'old-thread-states': () =>
    textInput(
      '          <idle>-0     [000] d..2.     1.000000: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=4096 ==> next_comm=b next_pid=6 next_prio=120\n',
    ),
  'nothing-traced': () => textInput('Attaching 4 probes...\ng2p clock boot\ng2p fact script token\n'),
  'no-scheduler-events': ofOthers,
  'no-cpu': () => fixture('perf-script/no-cpu.txt'),
  'no-event-formats': () => changed(perfData('mono'), (bytes) => bytes.fill(0, 72, 104)),
  'torn-file': () => log(perfData('switches').subarray(0, perfData('switches').length * 0.8)),
  'damaged-page': () => changed(traceDat('local-v6'), (bytes) => bytes.fill(0x7f, COMMIT, COMMIT + 2)),
  'damaged-compression': () =>
    changed(perfData('zstd'), (bytes) => {
      const at = Buffer.from(bytes).indexOf(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))
      bytes.fill(0xff, at + 600, at + 900)
    }),
  'buffer-on-other-clock': ofTwoClocks,
  'late-clock-marker': () =>
    textInput(
      `${Array.from({ length: 9000 }, (_, i) => waking(i)).join('\n')}\n bash-1 [000] d..2. 9001.000000: tracing_mark_write: g2p clock mono\n`,
    ),
}
