import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import { hasLlama, LIB, model, run, runner } from '../llama/testbed.ts'
import { BPFTRACE, canBpftrace } from '../machine.ts'
import { inFolder, NANO, newLog, RECORDER, readLog, useRecorder } from './recording.ts'
import '../live.ts'

/** Each script of native/ebpf, against the real llama.cpp and the real kernel: what it prints, and that it prints all. */

const SCRIPTS = fileURLToPath(new URL('../../native/ebpf', import.meta.url))
const ebpf = hasLlama() && canBpftrace() ? describe : describe.skip

/** What each line holds after its type, as docs/reference/ebpf-format.md has it. */
const LINES: Readonly<Record<string, RegExp>> = {
  clock: /^boot$/,
  fact: /^(script \w+|traced \/.+)$/,
  switch: /^\d+ \d+ \d+ -?\d+ \d+ \d+ -?\d+ .{16}\|.{1,15}$/,
  waking: /^\d+ \d+ \d+ \d+ -?\d+ \d+ -1 .{1,15}$/,
  fork: /^\d+ \d+ \d+ \d+ \d+ .{1,15}$/,
  rename: /^\d+ \d+ \d+ \d+ .{1,15}$/,
  exit: /^\d+ \d+ \d+ \d+ .{1,15}$/,
  encode: /^\d+ \d+ \d+ \d+ \d+ -?\d+$/,
  token: /^\d+ \d+ \d+ \d+ \d+ -?\d+$/,
  span: /^\d+ \d+ \d+ \d+ \d+ \d+ \d+$/,
  remove: /^\d+ \d+ \d+ -?\d+ -?\d+ -?\d+$/,
  graph: /^\d+ \d+ \d+ \d+ \d+ -?\d+$/,
  op: /^\d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \d+ \S.*$/,
  io: /^\d+ \d+ \d+ \d+ [01] \d+ \d+ \d+$/,
  fault: /^\d+ \d+ \d+ [01] (-1|\d+)$/,
}

let runs = 0

/** Runs a command under a script. Returns its events by type, as lists of words, in order of time, and its output. */
function trace(script: string, command: readonly string[], ...args: readonly string[]) {
  const output = inFolder(`${script}-${runs++}.g2p`)
  const env = { ...process.env, BPFTRACE_PERF_RB_PAGES: '2048' }
  const words = ['-o', output, '-c', command.join(' '), join(SCRIPTS, `${script}.bt`), ...args]
  const { status, stdout, stderr } = spawnSync(BPFTRACE[0], [...BPFTRACE.slice(1), ...words], {
    env,
    encoding: 'utf8',
    timeout: 240_000,
  })
  expect([status, /Lost \d+ events/.exec(stderr)]).toEqual([0, null])
  const lines = readFileSync(output, 'utf8').split('\n')
  expect(lines.find((line) => line.startsWith('g2p '))).toBe('g2p clock boot')
  const events = new Map<string, string[][]>()
  for (const line of lines) {
    if (!/^g2p\b/.test(line)) {
      expect(line).toMatch(/^$|^Attaching \d+ probes/)
      continue
    }
    const [, type, rest] = /^g2p (\w+) (.*)$/.exec(line)!
    expect([line, LINES[type!]?.test(rest!)]).toEqual([line, true])
    events.set(type!, [...(events.get(type!) ?? []), rest!.split(' ')])
  }
  const of = (type: string) => (events.get(type) ?? []).sort((a, b) => Number(a[0]) - Number(b[0]))
  const facts = new Map(events.get('fact')!.map(([key, ...rest]) => [key, rest.join(' ')]))
  expect(facts.get('script')).toBe(script)
  // bpftrace 0.17 has 63 bytes for a string.
  if (/uprobe:\$1/.test(readFileSync(join(SCRIPTS, `${script}.bt`), 'utf8')))
    expect(args[0]!.startsWith(facts.get('traced') ?? 'not told')).toBe(true)
  return { of, stdout }
}

const program = (name: string, source: string, ...options: readonly string[]) => {
  writeFileSync(inFolder(`${name}.c`), source)
  cc('-O1', '-pthread', ...options, '-o', inFolder(name), inFolder(`${name}.c`))
  return inFolder(name)
}

/** The library of the CPU backend that llama.cpp chooses here: it opens several, and goes on with the last one. */
function cpuLibrary([command, ...args]: readonly string[]): string {
  const { stderr } = spawnSync(command!, args, { env: { ...process.env, LD_DEBUG: 'files' }, encoding: 'utf8' })
  return [...stderr.matchAll(/calling init: (\S*libggml-cpu-\S*)/g)].at(-1)![1]!
}

ebpf('llama.cpp by uprobes (needs root, bpftrace, linux-x64 and cc)', () => {
  useRecorder()

  // A uprobe is in every process that uses the file: this one is of the test's own.
  let own = ''
  beforeAll(async () => {
    own = inFolder('lib')
    mkdirSync(own)
    const cpu = basename(cpuLibrary([await runner(), '--lib', LIB, '--model', (await model(NANO)).path]))
    const names = readdirSync(LIB).filter((name) => /^lib(llama|ggml|ggml-base)\.(so|v)/.test(name) || name === cpu)
    execFileSync('cp', ['--no-dereference', ...names.map((name) => join(LIB, name)), own]) // some are links
  })
  const traceOwn = (script: string, command: readonly string[], library: string) =>
    trace(script, ['/usr/bin/env', `LD_LIBRARY_PATH=${own}`, ...command], join(own, library))

  const recorded = async (args: readonly string[]) => {
    const log = newLog()
    execFileSync('mkdir', ['-p', join(log, '..')])
    const { path } = await model(NANO)
    const { code, lines } = await run(path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    expect([code, lines.length]).toEqual([0, 1])
    const command = [await runner(), '--lib', own, '--model', path, ...args]
    return { recording: await readLog(log), command }
  }

  test('token.bt and graph.bt: the calls and graphs that the recorder has', async () => {
    const { recording, command } = await recorded(['--decode', '5'])
    const tokens = traceOwn('token', command, 'libllama.so').of('token')
    expect(tokens.map(([, , , , count, result]) => [Number(count), Number(result)])).toEqual(
      recording.of('token').map(({ tokens }) => [tokens, 0]),
    )
    expect(tokens.every(([start, , , end]) => Number(end) > Number(start))).toBe(true)
    const graphs = traceOwn('graph', command, 'libggml-base.so').of('graph')
    // Views and the like are nodes of the graph, too, but nothing is computed for them.
    const nodes = new Set(graphs.map(([, , , , count]) => Number(count)))
    expect(graphs).toHaveLength(recording.of('graph').length)
    expect([nodes.size, [...nodes][0]! > recording.of('graph')[0]!.nodes]).toEqual([1, true])
    expect(graphs.map(([, , , , , status]) => status)).toEqual(graphs.map(() => '0'))
  })

  test('token.bt: the sequences of calls that the recorder has, but of a large batch of several', async () => {
    for (const args of [
      ['--decode', '5'],
      ['--decode', '5', '--parallel', '3'],
    ]) {
      const { recording, command } = await recorded(args)
      const found = traceOwn('token', command, 'libllama.so').of('span')
      const calls = recording.of('token').map(({ batch }) => batch!.spans)
      const isPrinted = (spans: (typeof calls)[number]) =>
        spans.length === 1 || spans.every(({ tokens }) => tokens === 1)
      expect(found.map(([, , , , ...numbers]) => numbers.map(Number))).toEqual(
        calls
          .filter(isPrinted)
          .flatMap((spans) => spans.map(({ sequence, position, tokens }) => [sequence, position, tokens])),
      )
      expect(found.length).toBeGreaterThan(5)
    }
  })

  test.each([1, 2])('op.bt: the operators that the recorder has, fused ones left out, %i workers', async (threads) => {
    const args = ['--decode', '3', '--threads', `${threads}`, '--threadpool']
    const { recording, command } = await recorded(args)
    const { of, tensor, text } = recording
    const traced = traceOwn('op', command, 'libggml-cpu-*.so').of('op')
    const found = traced.map(([, , , ith, , , , , ...ne]) => [ith, ...ne.slice(0, 4), ne.slice(5).join(' ')].join('|'))
    const wanted = of('operator')
      .filter(({ fusedTo }) => fusedTo === undefined)
      .map((op) => [op.worker, ...tensor(op.tensor).ne!, text(tensor(op.tensor).name)].join('|'))
    expect(wanted.length).toBeGreaterThan(50 * threads)
    expect(found.sort()).toEqual(wanted.sort())
    const ends = new Map<string, number>()
    for (const [start, , tid, , end, waited] of traced) {
      expect([start! >= `${ends.get(tid!) ?? 0}`, end! >= start!, waited! >= end!]).toEqual([true, true, true])
      ends.set(tid!, Number(waited))
    }
  })
})

/** Has the symbols of llama.cpp 0.7.0, or (OLD) of 0.5.0. A batch has as many tokens as it has room for. */
const CALLS = `
#include "stand-in.h"
#define F(type) __attribute__((noipa)) type
struct batch_ext { int n, room; };
#ifndef OLD
/* Of 0.7.0, which stand-in.h does not have. */
int _ZN15llama_batch_ext9add_tokenEi(struct batch_ext * batch, int sequence);
void _ZN15llama_batch_ext5clearEv(struct batch_ext * batch);
void _ZN15llama_batch_extC1EP13llama_context(struct batch_ext * batch, struct llama_context * context);
int32_t llama_process(struct llama_context * context, int type, struct batch_ext * batch);
#endif
static volatile int result;
#ifndef OLD
F(int) _ZN15llama_batch_ext9add_tokenEi(struct batch_ext * batch, int sequence) { return batch->n < batch->room ? batch->n++ : -1 + 0 * sequence; }
F(void) _ZN15llama_batch_ext5clearEv(struct batch_ext * batch) { batch->n = 0; }
F(void) _ZN15llama_batch_extC1EP13llama_context(struct batch_ext * batch, struct llama_context * context) { batch->n = 0; batch->room = context ? 3 : 0; }
F(int32_t) llama_process(struct llama_context * context, int type, struct batch_ext * batch) { return result + 0 * (type + batch->n + !context); }
#endif
F(int32_t) llama_decode(struct llama_context * context, struct llama_batch batch) {
#ifndef OLD
  struct batch_ext inner;
  _ZN15llama_batch_extC1EP13llama_context(&inner, context);
  _ZN15llama_batch_ext9add_tokenEi(&inner, 0);
  if (llama_process(context, 1, &inner) > 5) return -1;
#endif
  return result + 0 * (batch.n_tokens + !context);
}
F(int32_t) llama_encode(struct llama_context * context, struct llama_batch batch) { return result + 0 * (batch.n_tokens + !context); }
int split(void) __asm__("llama_decode.cold"); /* as compilers name what they take out of a function */
F(int) split(void) { return result; }
int main(void) {
  struct llama_context * const context = (void *) &result + split();
  llama_decode(context, (struct llama_batch){ .n_tokens = 7 });
  llama_encode(context, (struct llama_batch){ .n_tokens = 4 });
#ifndef OLD
  struct batch_ext one, two;
  _ZN15llama_batch_extC1EP13llama_context(&one, context);
  _ZN15llama_batch_extC1EP13llama_context(&two, context);
  for (int i = 0; i < 5; i++) _ZN15llama_batch_ext9add_tokenEi(&one, 0); /* the last two have no room */
  _ZN15llama_batch_ext9add_tokenEi(&two, 0);
  llama_process(context, 1, &one);
  llama_process(context, 0, &one);
  llama_process(context, 1, &two);
  _ZN15llama_batch_ext5clearEv(&one);
  for (int i = 0; i < 2; i++) _ZN15llama_batch_ext9add_tokenEi(&one, 0);
  result = 1;
  llama_process(context, 1, &one);
  _ZN15llama_batch_extC1EP13llama_context(&one, context);
  llama_process(context, 1, &one);
#endif
  result = -3;
  return llama_decode(context, (struct llama_batch){ .n_tokens = 1 }) != -3;
}`

ebpf('programs without libraries by uprobes (needs root, bpftrace, linux-x64 and cc)', () => {
  useRecorder()

  /** Name, tokens and result of each call. */
  const callsOf = (path: string) => {
    const { of } = trace('token', [path], path)
    const calls = ['token', 'encode'].flatMap((type) => of(type).map((words) => [type, ...words]))
    expect(calls.every(([, start, , , end]) => Number(end) > Number(start))).toBe(true)
    return calls
      .sort((a, b) => Number(a[1]) - Number(b[1]))
      .map(([type, , , , , tokens, result]) => `${type} ${tokens} ${result}`)
  }

  test('token.bt: calls of llama_process, with the tokens of its batches; one inside the other is one', () => {
    expect(callsOf(program('calls', CALLS, '-static'))).toEqual([
      'token 7 0',
      'encode 4 0',
      'token 3 0',
      'encode 3 0',
      'token 1 0',
      'token 2 1',
      'token 0 1',
      'token 1 -3',
    ])
  })

  test('token.bt: an older llama.cpp, which has no llama_process', () => {
    expect(callsOf(program('older', CALLS, '-static', '-DOLD'))).toEqual(['token 7 0', 'encode 4 0', 'token 1 -3'])
  })

  test.each([
    ['token', 'llama_decode'],
    ['graph', 'ggml_backend_graph_compute_async'],
    ['op', 'ggml_cpu_extra_compute_forward'],
  ])('%s.bt: of a stripped program, it is told that %s is missing', async (script, wanted) => {
    const [stripped, output] = [program('stripped', CALLS, '-static', '-s'), inFolder(`stripped-${script}.g2p`)]
    const words = ['-o', output, '-c', stripped, join(SCRIPTS, `${script}.bt`), stripped]
    const { status, stderr } = spawnSync('bpftrace', words, { encoding: 'utf8' })
    // Newer bpftrace says it itself; older goes on, and the reader of what it printed says it.
    if (status !== 0) expect(stderr).toMatch(/ERROR: .*\n?.*:(llama_decod|ggml_)/)
    else {
      const { drawn, issues } = await summarize(inputOf(output))
      expect([drawn, issues.map(({ code }) => code)]).toEqual([0, ['nothing-traced']])
      expect(issues[0]!.first.detail).toMatch(new RegExp(`^expected calls of ${wanted} in /.*, found no such function`))
    }
  })
})

ebpf('the kernel by tracepoints (needs root, bpftrace, linux-x64 and cc)', () => {
  useRecorder()

  test('sched.bt: threads, with odd names, and processes, from start to end', () => {
    const threads = program(
      'threads',
      `#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void * work(void * name) { pthread_setname_np(pthread_self(), name); usleep(2000); printf("%ld ", syscall(SYS_gettid)); return NULL; }
int main(void) {
  pthread_t one; char * names[] = {"a|b = c: 1", "x ==> y"};
  for (int i = 0; i < 2; i++) { pthread_create(&one, NULL, work, names[i]); pthread_join(one, NULL); }
  fflush(stdout);
  pid_t child = fork(); if (!child) _exit(0);
  wait(NULL); printf("%d %d", child, getpid());
}`,
    )
    const { of, stdout } = trace('sched', [threads])
    const [first, second, child, main] = stdout.match(/\d+/g)!.map(String)
    const seen = (type: string, at: number, tid: string) =>
      of(type)
        .filter((words) => words[at] === tid)
        .map((words) => words.slice(2).join(' '))
    expect(seen('fork', 3, first!)).toEqual([`${main} ${first} ${main} threads`])
    expect(seen('fork', 3, child!)).toEqual([`${main} ${child} ${child} threads`])
    expect(seen('rename', 2, first!)).toEqual([`${first} ${main} a|b = c: 1`])
    expect(seen('rename', 2, second!)).toEqual([`${second} ${main} x ==> y`])
    expect(seen('exit', 2, second!)).toEqual([`${second} ${main} x ==> y`])
    expect(seen('exit', 2, child!)).toEqual([`${child} ${child} threads`])
    expect(seen('waking', 3, first!).length).toBeGreaterThan(0)
    // A CPU goes from one thread to the next: nothing is missing between two switches.
    const current = new Map<string, string>()
    for (const [, cpu, prev, , , next] of of('switch')) {
      expect(current.get(cpu!) ?? prev).toBe(prev)
      current.set(cpu!, next!)
    }
    expect(of('switch').length).toBeGreaterThan(10)
  })

  test('fault.bt: each page that is touched, once, with its address', () => {
    const touch = program(
      'touch',
      `#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  char * pages = mmap(NULL, 500 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(pages, 500 * 4096, MADV_NOHUGEPAGE);
  for (int i = 0; i < 500; i++) pages[i * 4096 + 100] = 1;
  printf("%lu %d\\n", (unsigned long) pages, getpid());
}`,
    )
    const { of, stdout } = trace('fault', [touch])
    const [base, pid] = /^(\d+) (\d+)$/m.exec(stdout)!.slice(1).map(Number)
    const hit = of('fault')
      .filter(([, , tid]) => Number(tid) === pid)
      .map(([, , , isMajor, address]) => [isMajor, (Number(address) - base! - 100) / 4096])
      .filter(([, page]) => Number(page) >= 0 && Number(page) < 500)
    expect(hit).toEqual(Array.from({ length: 500 }, (_, page) => ['0', page]))
  })

  const BYTES = 1 << 18
  const direct = (path: string) => ['dd', `if=${path}`, 'of=/dev/null', 'iflag=direct', 'bs=65536']

  test('block.bt: bytes that are read from a disk (needs a temporary folder on a block device)', () => {
    const path = inFolder('file')
    const file = openSync(path, 'w')
    writeSync(file, Buffer.alloc(BYTES, 1))
    fsyncSync(file)
    closeSync(file)
    const [dd, ...args] = direct(path)
    if (spawnSync(dd!, args).status !== 0) return
    const which = execFileSync('sh', ['-c', 'command -v dd'], { encoding: 'utf8' }).trim()
    const { of } = trace('block', [which, ...args])
    // By its thread; on a busy machine the kernel leaves some requests to a worker of its own: then by its place on the disk.
    const byThread = new Map<string, number>()
    const requests: { dev: string; from: number; bytes: number }[] = []
    for (const [start, , tid, end, isWrite, bytes, dev, sector] of of('io')) {
      expect(Number(end)).toBeGreaterThan(Number(start))
      if (isWrite !== '0') continue
      byThread.set(tid!, (byThread.get(tid!) ?? 0) + Number(bytes))
      requests.push({ dev: dev!, from: Number(sector) * 512, bytes: Number(bytes) })
    }
    const inOnePiece = requests.map(({ dev, from }) => {
      let to = from
      for (let next: (typeof requests)[number] | undefined; ; to += next.bytes) {
        next = requests.find((request) => request.dev === dev && request.from === to && request.bytes > 0)
        if (!next) return to - from
      }
    })
    expect([...byThread.values(), ...inOnePiece]).toContain(BYTES)
  })
})

test('every script has a head that tells its purpose, usage, cost and output, with lines as it prints them', () => {
  const scripts = execFileSync('ls', [SCRIPTS], { encoding: 'utf8' }).split('\n')
  expect(scripts.filter((name) => name.endsWith('.bt'))).toHaveLength(6)
  for (const name of scripts.filter((script) => script.endsWith('.bt'))) {
    const text = readFileSync(join(SCRIPTS, name), 'utf8')
    const head = text.slice(0, text.indexOf('*/'))
    expect(head).toContain(` * ${basename(name)}: `)
    expect(head).toMatch(
      /\n \* Purpose [\s\S]*\n \* Usage [\s\S]*\n \* Cost {6}\S.*\n \* Output .*docs\/reference\/ebpf-format\.md[\s\S]*\n \* {5}g2p clock boot\n \* {5}g2p /u,
    )
    for (const [line, type, rest] of head.matchAll(/^ \* {5}g2p (\w+) (.*)$/gm)) {
      expect([line, LINES[type!]?.test(rest!)]).toEqual([line, true])
    }
    expect(text).toContain(`g2p clock boot\\ng2p fact script ${basename(name, '.bt')}\\n`)
  }
})
