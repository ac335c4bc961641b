import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect } from '@jest/globals'
import { inLong } from '../long.ts'
import { at, CLI, COMMAND, folder, NODE, names, run } from './helpers.ts'
import {
  CALLER,
  canRecord,
  canRun,
  compile,
  linuxTest,
  NO_CALL,
  script,
  unless,
  useProgram,
  WITH_LLAMA,
} from './record-helpers.ts'

/** Small C programs are recorded with the real recorder; llama.cpp itself in test/llama. */

useProgram()

const SIGNALS = `#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile int counts[65];
static void count(int n) { counts[n]++; }
int main(int argc, char ** argv) {
  for (int n = 1; n < 32; n++) if (n != SIGCHLD && n != SIGSEGV && n != SIGCONT) signal(n, count);
  puts("ready"); fflush(stdout);
  for (int i = 0; i < 30000 && (argc < 2 || !counts[SIGTERM]) && !counts[SIGINT]; i++) usleep(10000);
  for (int i = 0; i < 20; i++) usleep(10000); // each signal ends one of these
  for (int n = 1; n < 32; n++) if (counts[n]) printf("%d*%d ", n, counts[n]);
  puts(""); (void) argv;
  return 7;
}`

const ENVIRONMENT = `#include <stdio.h>
extern char ** environ;
__attribute__((weak)) int own_function(void);
int main(void) {
  for (char ** e = environ; *e; e++) puts(*e);
  return own_function ? own_function() : 1;
}`

beforeAll(() => {
  if (canRecord) compile('signals', SIGNALS)
})

/** Runs a program in the test file's folder, however it ends. */
const direct = (command: string, ...args: string[]) =>
  spawnSync(command, args, { cwd: folder, env: process.env, encoding: 'utf8', timeout: 240_000 })

describe('the program', () => {
  linuxTest('keeps its exit code', () => {
    for (const code of [0, 3, 255]) expect(run(['record', '--', 'sh', '-c', `exit ${code}`]).code).toBe(code)
  })

  linuxTest('that a signal ended ends us alike; a core dump is not repeated', () => {
    const ended = (signal: string) => direct(...NODE, CLI, 'record', 'sh', '-c', `kill -${signal} $$`)
    expect(ended('TERM').signal).toBe('SIGTERM')
    expect(ended('INT').signal).toBe('SIGINT')
    const { status, signal, stderr } = ended('SEGV')
    expect([status, signal]).toEqual([139, null])
    expect(stderr).toMatch(/^sh was ended by SIGSEGV\n/)
  })

  inLong(linuxTest)('that a signal ended ends us alike for a shell', () => {
    const shown = (signal: string) =>
      direct('bash', '-c', `${COMMAND} record -- sh -c 'kill -${signal} $$'; echo $?`).stdout
    expect([shown('KILL'), shown('SEGV')]).toEqual(['137\n', '139\n'])
  })

  linuxTest('reads and writes its own streams, byte for byte', () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) >> 3))
    const { code, bytes: out, stderr } = run(['record', '-q', '--', 'sh', '-c', 'echo own >&2; cat'], { input: bytes })
    expect([code, out.equals(bytes)]).toEqual([0, true])
    expect(stderr).toMatch(/^own\nno ggml call/)
  })

  linuxTest('gets its arguments as they are, with and without -- before it', () => {
    const args = ['-o', '--help', '--', '', '"quoted"', "'", '007', '-', '--x=1', 'a b', '--level', '-1', 'ü\n$HOME']
    const shown = `${['sh', ...args].join('|')}|`
    for (const mark of [['--'], []]) {
      const { stdout } = run([
        'record',
        '-q',
        '--level',
        'op',
        ...mark,
        'sh',
        '-c',
        'printf "%s|" "$0" "$@"',
        'sh',
        ...args,
      ])
      expect(stdout).toBe(shown)
    }
  })

  linuxTest('has the environment that it would have had, and LD_PRELOAD of its user in force', () => {
    compile('libown.so', 'int own_function(void); int own_function(void) { return 42; }', '-shared', '-fPIC')
    compile('environment', ENVIRONMENT)
    const wanted = (env: Record<string, string>) => {
      const plain = spawnSync(at('environment'), { env: { ...process.env, ...env }, encoding: 'utf8' })
      const recorded = run(['record', '-q', './environment'], { env })
      const ours = /[: ]?[^:= ]*libggml2perfetto\.so/
      const lines = recorded.stdout
        .split('\n')
        .filter((line) => !line.startsWith('GGML2PERFETTO_'))
        .filter((line) => !line.startsWith('NVTX_INJECTION64_PATH='))
        .map((line) => (line.startsWith('LD_PRELOAD=') ? line.replace(ours, '') : line))
        .filter((line) => line !== 'LD_PRELOAD=')
        .filter((line) => line !== 'GGML_VK_DEBUG_MARKERS=1') // names ggml's work on GPUs
      expect(lines.sort()).toEqual(plain.stdout.split('\n').sort())
      expect(recorded.code).toBe(plain.status)
      return recorded.code
    }
    expect(wanted({ LD_PRELOAD: at('libown.so') })).toBe(42)
    expect(wanted({ ODD: 'a=b\nc', EMPTY: '' })).toBe(1)
  })

  linuxTest('that is not there, or cannot be run, gives the exit codes of a shell', () => {
    writeFileSync(at('plain'), 'x')
    writeFileSync(at('data'), Buffer.from([1, 2, 0, 3]))
    chmodSync(at('data'), 0o755)
    script('orphan', '#!/nonexistent/sh\n')
    expect(run(['record', 'no-such-program'])).toMatchObject({
      code: 127,
      stderr: expect.stringMatching(/^error: no-such-program: no such program in PATH\n/),
    })
    expect(run(['record', 'caller']).stderr).toContain('it is in this folder: ./caller')
    expect(run(['record', './nowhere'])).toMatchObject({ code: 127, stderr: 'error: ./nowhere: no such program\n' })
    expect(run(['record', './orphan'])).toMatchObject({
      code: 127,
      stderr: expect.stringMatching(/its interpreter \/nonexistent\/sh is not/),
    })
    expect(run(['record', './plain'])).toMatchObject({
      code: 126,
      stderr: expect.stringMatching(/it is not executable\nhint: chmod \+x/),
    })
    expect(run(['record', './data'])).toMatchObject({
      code: 126,
      stderr: expect.stringMatching(/it is no program of this system/),
    })
    expect(run(['record', '.'])).toMatchObject({ code: 127 })
    expect(run(['record', './empty'])).toMatchObject({ code: 126, stderr: expect.stringMatching(/is a directory/) })
    expect(run(['record', '--', ''])).toMatchObject({ code: 127 })
    expect(run(['record'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: no program to record\nhint: /),
    })
  })

  linuxTest('is found in PATH as a shell finds it, and knows itself by the name that was typed', () => {
    mkdirSync(at('bin'))
    script('bin/tool', '#!/bin/sh\necho "$0"')
    symlinkSync(at('bin/tool'), at('bin/link'))
    const PATH = `/nonexistent:${at('bin')}:${process.env['PATH']}`
    for (const name of ['tool', 'link']) {
      expect(run(['record', name], { env: { PATH } }).stdout).toBe(`${at(`bin/${name}`)}\n`)
    }
    expect(run(['record', 'sh', '-c', 'tr "\\0" " " < /proc/$$/cmdline']).stdout).toMatch(/^sh -c/)
  })
})

describe('signals', () => {
  const started = (args: readonly string[]) => {
    // With a session of its own there is no terminal, whoever runs the tests.
    const child = spawn(NODE[0], [...NODE.slice(1), CLI, 'record', ...args], {
      cwd: folder,
      env: process.env,
      stdio: 'pipe',
      detached: true,
    })
    let stdout = ''
    const isReady = new Promise<void>((resolve) => {
      child.stdout.on('data', (data) => {
        stdout += data
        if (stdout.startsWith('ready')) resolve()
      })
    })
    const ended = new Promise<{ code: number | null; stdout: string }>((resolve) => {
      child.on('close', (code) => resolve({ code, stdout }))
    })
    return { child, isReady, ended }
  }

  linuxTest('that are sent to us reach the program, once', async () => {
    const { child, isReady, ended } = started(['./signals', 'term'])
    await isReady
    for (const signal of ['SIGHUP', 'SIGUSR2', 'SIGTERM'] as const) child.kill(signal)
    expect(await ended).toEqual({ code: 7, stdout: 'ready\n1*1 12*1 15*1 \n' })
  })

  linuxTest('without a terminal, SIGINT too', async () => {
    const { child, isReady, ended } = started(['./signals'])
    await isReady
    child.kill('SIGINT')
    expect(await ended).toEqual({ code: 7, stdout: 'ready\n2*1 \n' })
  })

  linuxTest('those of the process group, which the program gets as we do, reach it once', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const { child, isReady, ended } = started(['./signals', ...(signal === 'SIGTERM' ? ['term'] : [])])
      await isReady
      process.kill(-child.pid!, signal)
      const number = signal === 'SIGINT' ? 2 : 15
      expect(await ended).toEqual({ code: 7, stdout: `ready\n${number}*1 \n` })
    }
  })

  inLong(unless(!canRun('timeout', '--version')))(
    'timeout, which sends one to us and one to the group (needs timeout)',
    () => {
      const { status, stdout } = direct('timeout', '5', ...NODE, CLI, 'record', './signals', 'term')
      expect({ status, stdout: stdout.split('\n').slice(0, 2) }).toEqual({ status: 124, stdout: ['ready', '15*1 '] })
    },
  )

  const inTerminal = `import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
seen = b''
sent = False
while True:
    try: data = os.read(terminal, 4096)
    except OSError: break
    if not data: break
    seen += data
    if b'ready' in seen and not sent:
        sent = True
        os.write(terminal, b'\\x03')
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), seen.decode())`

  unless(!canRun('python3', '-c', 'import pty, os; os.waitstatus_to_exitcode'))(
    'Ctrl-C at a terminal reaches the program once, and we wait for it (needs python3)',
    () => {
      const args = ['-c', inTerminal, ...NODE, CLI, 'record', './signals']
      const { stdout } = direct('python3', ...args)
      expect(stdout).toMatch(/^7 ready/)
      expect(stdout).toContain('2*1 ')
      expect(stdout).toMatch(NO_CALL)
    },
  )
})

describe('the log', () => {
  linuxTest('is written beside the summary and the next command, on stderr', () => {
    const { code, stdout, stderr } = run(['record', '-o', 'run.ggtrace', './caller'])
    expect([code, stdout]).toEqual([0, 'said\n'])
    expect(stderr).toMatch(/^decode .* tok\/s .*\nrun\.ggtrace: 2 calls/)
    expect(stderr).toMatch(/\nwrote run\.ggtrace \([\d.]+ KiB\)\nnext: ggml2perfetto run\.ggtrace\n$/)
    expect(stderr).toMatch(/ {2}note: /) // no ggml to learn the tensors of
    expect(run(['run.ggtrace']).stdout).toMatch(/^decode .* tok\/s .*\nrun\.ggtrace: 2 calls/)
    expect(run(['record', '--level', 'token', '-q', '-o', 'quiet.ggtrace', './caller']).stderr).toBe('')
    expect(run(['info', 'quiet.ggtrace']).stdout).toMatch(/level +token/)
  })

  linuxTest('is called after the program and the time, in the current folder', () => {
    const { stderr } = run(['record', '../caller'], { cwd: at('empty') })
    const name = /^next: ggml2perfetto (caller-\d{8}-\d{6}\.ggtrace)$/m.exec(stderr)?.[1]
    const date = new Date()
    expect(name).toContain(`caller-${date.getFullYear()}${String(date.getMonth() + 1).padStart(2, '0')}`)
    expect(existsSync(at(`empty/${name}`))).toBe(true)
  })

  linuxTest('replaces an older one, which stays where there is no new one', () => {
    run(['record', '-q', '-o', 'old.ggtrace', './caller'])
    const older = readFileSync(at('old.ggtrace'))
    expect(run(['record', '-o', 'old.ggtrace', 'true']).stderr).toMatch(NO_CALL)
    expect(readFileSync(at('old.ggtrace')).equals(older)).toBe(true)
    expect(run(['record', '-o', 'old.ggtrace', './caller']).stderr).toMatch(
      /^decode .* tok\/s .*\nold\.ggtrace: 2 calls/,
    )
    expect(names().filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  linuxTest('of a program that is killed is told of, too', () => {
    compile('dies', CALLER.replace('return code', 'return code + *(volatile char *) 0'), ...WITH_LLAMA())
    const { stderr, status } = direct(...NODE, CLI, 'record', '-o', 'killed.ggtrace', './dies')
    expect([status, stderr.split('\n')[0]]).toEqual([139, './dies was ended by SIGSEGV'])
    expect(stderr).toMatch(/next: ggml2perfetto killed\.ggtrace/)
  })

  linuxTest('of what a script becomes by exec is written, and with --no-children none of its children', () => {
    script('becomes', '#!/usr/bin/env bash\n./caller\nexec ./caller\n')
    const { stdout, stderr, code } = run(['record', '--no-children', '-o', 'becomes.ggtrace', './becomes'])
    expect([code, stdout]).toEqual([0, 'said\nsaid\n'])
    expect(stderr).toMatch(/^next: ggml2perfetto becomes\.ggtrace$/m)
    expect(stderr.match(/: 2 calls/g)).toHaveLength(1)
  })

  linuxTest('of each process that calls ggml is written, the first one under the name of the log', () => {
    script('several', '#!/usr/bin/env bash\ntrue\n(./caller)\n./caller | cat\n')
    const { stdout, stderr, code } = run(['record', '-o', 'several.ggtrace', './several'])
    expect([code, stdout]).toEqual([0, 'said\nsaid\n'])
    expect(stderr).toMatch(/^next: ggml2perfetto several\.ggtrace several\.ggtrace\.\d+$/m)
    expect(stderr.match(/: 2 calls/g)).toHaveLength(2)
    expect(names().filter((name) => name.startsWith('several.'))).toHaveLength(2)
  })

  const WRAPPERS = [
    ['timeout', '60'],
    ['env', 'A=1'],
    ['nice', '-n', '1'],
    ['sh', '-c', 'true; "$0"; exit $?'],
    ['stdbuf', '-o0'],
    ['taskset', '-c', '0'],
    ['setpriv', '--no-new-privs'],
    ['timeout', '60', 'nice', 'sh', '-c', 'exec "$0"'],
  ]
  for (const wrapper of WRAPPERS.filter(([program]) => canRun(program!, '--version') || program === 'sh')) {
    linuxTest(`of what ${wrapper.join(' ')} starts is the only one, without an option`, () => {
      const { stdout, stderr, code } = run(['record', '-o', 'wrapped.ggtrace', '--', ...wrapper, './caller'])
      expect([code, stdout]).toEqual([0, 'said\n'])
      expect(stderr).toMatch(/^decode .* tok\/s .*\nwrapped\.ggtrace: 2 calls/)
      expect(stderr).toMatch(/^next: ggml2perfetto wrapped\.ggtrace$/m)
      expect(names().filter((name) => name.startsWith('wrapped.'))).toEqual(['wrapped.ggtrace'])
    })
  }

  linuxTest('tells with --sync that nodes were computed one by one; not otherwise, whatever the environment', () => {
    const env = { GGML2PERFETTO_SYNC: '1' }
    const synced = run(['record', '--sync', '-o', 'sync.ggtrace', './caller'])
    expect([synced.code, synced.stdout]).toEqual([0, 'said\n'])
    expect(synced.stderr).toMatch(/^ {2}note: .*computed and timed one by one \(--sync\)/m)
    expect(run(['info', 'sync.ggtrace']).stdout).toMatch(/note +.*timed one by one/)
    expect(run(['record', '-o', 'plain.ggtrace', './caller'], { env }).stderr).not.toContain('one by one')
    const seen = (...args: string[]) =>
      run(['record', '-q', ...args, 'sh', '-c', 'echo "<$GGML2PERFETTO_SYNC>"'], { env }).stdout
    expect([seen('--sync'), seen('--sync', '--level', 'graph'), seen()]).toEqual(['<1>\n', '<1>\n', '<>\n'])
    expect(run(['record', '--sync', '--level', 'token', './caller'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'error: sync: expected level graph or op, found token\n',
    })
    expect(run(['help', 'record']).stdout).toMatch(/--sync +Compute node by node/)
  })

  linuxTest('is without thread states with --no-states', () => {
    const seen = (...args: string[]) =>
      run(['record', '-q', ...args, 'sh', '-c', 'echo "<$GGML2PERFETTO_STATES>"']).stdout
    expect([seen('--no-states'), seen()]).toEqual(['<0>\n', '<>\n'])
    expect(run(['help', 'record']).stdout).toMatch(/--states +Record when threads ran/)
  })

  linuxTest('is without functions around calls with --no-functions', () => {
    const seen = (...args: string[]) =>
      run(['record', '-q', ...args, 'sh', '-c', 'echo "<$GGML2PERFETTO_FUNCTIONS>"']).stdout
    expect([seen('--no-functions'), seen()]).toEqual(['<0>\n', '<>\n'])
    expect(run(['help', 'record']).stdout).toMatch(/--functions +Record what the program does around calls/)
  })

  linuxTest('holds what was asked for', () => {
    const seen = (...args: string[]) =>
      run(['record', '-q', ...args, 'sh', '-c', 'env | grep ^GGML2PERFETTO_ | sort']).stdout.split('\n')
    const options = ['--tokens', '2..', '--every', '3', '--ops', 'mul_mat,Add', '--paused', '--toggle', 'SIGUSR2']
    expect(seen(...options, '--max-size', '2M')).toEqual(
      expect.arrayContaining([
        ...['GGML2PERFETTO_EVERY=3', 'GGML2PERFETTO_MAX_BYTES=2097152', 'GGML2PERFETTO_OPS=MUL_MAT,ADD'],
        ...['GGML2PERFETTO_PAUSED=paused, until resumed', 'GGML2PERFETTO_TOGGLE=12', 'GGML2PERFETTO_TOKENS=2..'],
      ]),
    )
    expect(seen('--tokens', '4')).toContain('GGML2PERFETTO_TOKENS=4..4')
    const names = seen().map((line) => line.split('=')[0])
    expect(names).not.toContain('GGML2PERFETTO_EVERY')
    const refused = (...args: string[]) => run(['record', ...args, './caller'])
    const problem = (text: string) => ({ code: 1, stdout: '', stderr: expect.stringContaining(text) })
    expect(refused('--every', '0')).toMatchObject(problem('--every "0": expected a whole number from 1'))
    expect(refused('--max-size', '10')).toMatchObject(problem('--max-size "10": expected a size from 64K'))
    expect(refused('--max-size', 'much')).toMatchObject(problem('such as 500M or 2G'))
    expect(refused('--toggle', 'SIGINT')).toMatchObject(problem('expected SIGUSR1 or SIGUSR2'))
    expect(refused('--tokens', '5..3')).toMatchObject(problem('the first comes after the last'))
  })

  linuxTest('is refused before the program starts where it cannot be written', () => {
    const refused = (output: string) => {
      const { code, stdout, stderr } = run(['record', '-o', output, './caller'])
      expect([code, stdout]).toEqual([1, ''])
      return stderr
    }
    expect(refused('.')).toMatch(/^error: \.: cannot write: is a directory\nhint: name a file, such as caller\.ggtrace/)
    expect(refused('nowhere/x')).toBe('error: nowhere/x: cannot write: no such folder: nowhere\n')
    expect(refused('/dev/null')).toMatch(/not a regular file/)
    expect(refused('./caller')).toMatch(/it is the program itself/)
    expect(refused('-')).toMatch(/cannot go to stdout/)
    expect(refused('/proc/x')).toBe('error: /proc/x: cannot write: permission denied\n')
  })

  unless(process.getuid?.() === 0)('is refused in a folder without the right to write', () => {
    mkdirSync(at('closed'), { mode: 0o555 })
    expect(run(['record', '-o', 'closed/x', './caller'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/permission denied/),
    })
  })
})
