import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect } from '@jest/globals'
import { cc } from '../compile.ts'
import { inParts, someOf } from '../long.ts'
import { at, folder, run } from './helpers.ts'
import {
  CALLER,
  canRecord,
  canRun,
  compile,
  linuxTest,
  NO_CALL,
  rootTest,
  unless,
  useProgram,
  WITH_LLAMA,
} from './record-helpers.ts'
import '../live.ts'

/** Why there is no log: the program that ran, and what kept the recorder out of it, whoever started it. */

useProgram()

/** Contains ggml and llama.cpp: a recorder finds their functions by symbols. Their code calls what no compiler knows (register-use.h). */
const inside = (main: string, decode = '') => `#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "stand-in.h"
const char * const text = "llama_decode";
${decode}
struct ggml_context * ggml_init(struct ggml_init_params params) { return getenv("A") ? params.mem_buffer : NULL; }
enum ggml_status ggml_backend_graph_compute_async(struct ggml_backend * b, struct ggml_cgraph * g) { (void) b; return getenv("A") ? (enum ggml_status) (g != NULL) : GGML_STATUS_SUCCESS; }
int32_t llama_decode(struct llama_context * context, struct llama_batch batch) { if (getenv("A")) puts("a"); return batch.n_tokens - 1 + (context == NULL); }
int main(int count, char ** arguments) { (void) count; ${main} }`
const CALLS = `struct llama_batch batch = {.n_tokens = 1};
  for (int i = 0; i < 2; i++) if (llama_decode((void *) arguments, batch)) return 9;
  return puts("said") < 0;`

beforeAll(() => {
  if (!canRecord) return
  const flags = ['-fno-inline', '-fno-ipa-cp']
  compile('inside', inside(CALLS), ...flags)
  compile('stripped', inside(CALLS), ...flags, '-s')
  compile('leaving', inside(`return unlink(arguments[0]);`), ...flags, '-s')
  const DECODE = 'int32_t llama_decode(struct llama_context * context, struct llama_batch batch)'
  const COMPUTE = 'enum ggml_status ggml_backend_graph_compute_async(struct ggml_backend * b, struct ggml_cgraph * g)'
  const named = (decode: string) => `${DECODE} __asm__("${decode}"); ${COMPUTE} __asm__("elsewhere");`
  compile('copied', inside(CALLS, named('llama_decode.constprop.0')), ...flags)
  compile('inlined', inside(CALLS, named('elsewhere2')), ...flags)
  compile('fixed', 'int main(void) { return 0; }', '-static')
  compile(
    'idle',
    CALLER.replace(/int code = .*;/, 'int code = argc > 5 ? llama_decode(context, batch) : 0;'),
    ...WITH_LLAMA(),
  )
  cc('-O1', '-o', at('deny'), fileURLToPath(new URL('../llama/deny.c', import.meta.url)))
  chmodSync(at('deny'), 0o755)
})

/** The reasons, without a log; the program's own output and exit code stay. */
const reasons = (args: readonly string[], said: Partial<Record<'code' | 'stdout', unknown>> = {}) => {
  const named = args[0] === '-o' ? args : ['-o', 'none.ggtrace', ...args]
  const { code, stdout, stderr } = run(['record', ...named])
  expect({ code, stdout, stderr }).toMatchObject({ ...said, stderr: expect.stringMatching(NO_CALL) })
  return stderr.split('\n').filter((line) => line.startsWith('  - '))
}
const said = { code: 0, stdout: 'said\n' }

describe('behind a program that starts others, the reason is that of the program that ran', () => {
  const STARTERS = [
    ['timeout', '99'],
    ['env'],
    ['nice'],
    ['nohup'],
    ['sh', '-c', 'exec "$0"'],
    ['taskset', '-c', '0'],
    ['unshare'],
    ['setpriv'],
    ['sh', '-c', 'env nice "$0"; exit $?'],
    ['sh', '-c', '"$0"; exit $?'],
    ['bash', '-c', '"$0"; exit $?'],
    ['xargs', '-a', '/dev/null'],
  ]
  for (const starter of someOf(STARTERS, 4))
    inParts(unless(!canRun(starter[0]!, '--version') && starter[0] !== 'sh'))(
      `${starter.join(' ')}: it contains ggml, and is stripped`,
      () => {
        expect(reasons([...starter, at('stripped')], said)).toEqual([
          expect.stringMatching(
            /^ {2}- \/.*\/stripped: ggml is built into it .*it has no symbols, by which .*BUILD_SHARED_LIBS=ON/,
          ),
        ])
      },
    )

  linuxTest('it is linked with ggml, and computed nothing', () => {
    expect(reasons(['env', './idle'])).toEqual([
      expect.stringMatching(/\/idle is linked with ggml: perhaps it had nothing to compute$/),
    ])
  })

  linuxTest('none of what ran is linked with ggml', () => {
    expect(reasons(['sh', '-c', 'env true; sleep 0'])).toEqual([
      expect.stringMatching(/Neither it nor what it started \((?:\w+, ){2}\w+\) is linked with ggml\. .*--libraries/),
    ])
  })

  linuxTest('a program that has all of it has a log, whoever starts it', () => {
    const { code, stdout, stderr } = run(['record', '-o', 'whole.ggtrace', 'sh', '-c', 'env nice ./caller; exit $?'])
    expect([code, stdout, stderr]).toEqual([0, 'said\n', expect.stringMatching(/whole\.ggtrace: 2 calls/)])
  })
})

describe('a program that is started without the recorder, and why', () => {
  const without = (by: string, name: string, why: string) =>
    expect.stringMatching(new RegExp(`^ {2}- ${by} started /.*/${name} without the recorder: ${why}`))

  linuxTest('without LD_PRELOAD', () => {
    const why = [without('env', 'caller', 'env did not pass it LD_PRELOAD: record there: .*program that others start')]
    expect(reasons(['env', '-i', './caller'], said)).toEqual(why)
    expect(reasons(['sh', '-c', 'env -u LD_PRELOAD ./caller; exit $?'], said)).toEqual(why)
    // It is found as the system finds it.
    const path = `PATH=${folder}:${process.env['PATH']}`
    expect(reasons(['env', path, 'sh', '-c', 'unset LD_PRELOAD; exec caller'], said)).toEqual([
      without('sh', 'caller', 'sh did not pass'),
    ])
  })

  linuxTest('linked statically', () => {
    expect(reasons(['sh', '-c', './fixed; exit $?'])).toEqual([
      without('sh', 'fixed', 'it is linked statically, .*program without shared libraries'),
    ])
  })

  linuxTest('one that does not start is not named', () => {
    expect(reasons(['sh', '-c', './missing 2>&-; LD_PRELOAD= exec ./missing']).join()).not.toMatch(
      /without the recorder/,
    )
  })

  linuxTest('of several, those that contain ggml are named', () => {
    expect(reasons(['sh', '-c', './fixed; env -i true; env -i ./caller'])).toEqual([
      without('env', 'caller', 'env did not'),
    ])
  })

  rootTest('with more rights (needs root)', () => {
    copyFileSync(at('caller'), at('raised'))
    chmodSync(folder, 0o755)
    chownSync(at('raised'), 65534, 65534)
    chmodSync(at('raised'), 0o4755)
    expect(reasons(['env', './raised'], said)).toEqual([
      without('env', 'raised', 'the system gives it more rights, .*program with more rights'),
    ])
  })

  rootTest('by a user who may not read it (needs root, setpriv)', () => {
    chmodSync(folder, 0o755)
    const other = 'setpriv --reuid=65534 --regid=65534 --clear-groups ./caller; exit $?'
    // The library is in a folder of root's.
    chmodSync(at('cache'), 0o700)
    expect(reasons(['sh', '-c', other], said)).toEqual([
      without('setpriv', 'caller', 'its user may not read /.*/libggml2perfetto.so: set XDG_CACHE_HOME'),
    ])
  })

  /** A root with the program, and what it needs, by ldd. */
  const root = (name: string) => {
    const place = (path: string) => {
      mkdirSync(join(at(name), dirname(path)), { recursive: true })
      copyFileSync(path, join(at(name), path))
    }
    const needed = spawnSync('ldd', [at('caller')], { encoding: 'utf8' }).stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)
    for (const [, path] of needed) place(path!)
    copyFileSync(at('caller'), join(at(name), 'caller'))
    return { place }
  }

  rootTest('in another root, where it is not (needs root, ldd)', () => {
    rmSync(at('root'), { recursive: true, force: true })
    const { place } = root('root')
    const started = `chroot started /caller without the recorder: in the root directory that chroot changed to there is no`
    const { stderr } = run(['record', '-o', 'none.ggtrace', 'chroot', 'root', '/caller'])
    const [, library] = /ld\.so: object '(.*)' from LD_PRELOAD cannot be preloaded/.exec(stderr)!
    expect(reasons(['chroot', 'root', '/caller'], said)).toEqual([
      expect.stringContaining(`  - ${started} ${library}, so that ld.so cannot preload it: record there, or mount `),
    ])
    // With the recorder, the log's folder is missing, or another one.
    place(library!)
    mkdirSync(at('logs'), { recursive: true })
    const logged = ['-o', 'logs/none.ggtrace', 'chroot', 'root', '/caller']
    const apart = 'chroot started /caller in another root directory, where'
    expect(reasons(logged, said)).toEqual([
      expect.stringContaining(`${apart} there is no folder ${at('logs')} for the log: `),
    ])
    mkdirSync(join(at('root'), at('logs')))
    expect(reasons(logged, said)).toEqual([
      expect.stringContaining(`${apart} ${at('logs')} is another folder: if ggml was called, the log is there`),
    ])
    expect(statSync(join(at('root'), at('logs'), 'none.ggtrace')).size).toBeGreaterThan(4096)
  })
})

describe('a program that contains ggml, of which no call can be seen', () => {
  const hidden = (name: string, why: string) =>
    expect.stringMatching(
      new RegExp(
        `^ {2}- ggml is built into /.*/${name} \\(static libraries\\): ${why}.*, or build it with -DBUILD_SHARED`,
      ),
    )
  linuxTest('with symbols, all is seen', () => {
    expect(run(['record', '-o', 'inside.ggtrace', './inside'])).toMatchObject({
      ...said,
      stderr: expect.stringMatching(/inside\.ggtrace: 2 calls/),
    })
  })

  linuxTest.each([
    [
      'a filter that refuses it',
      `${constants.errno.EPERM}`,
      'mprotect',
      'a seccomp filter refuses changes of its code',
    ],
    ['a filter that kills', 'kill', 'mprotect', 'a seccomp filter refuses changes of its code'],
    ['PR_SET_MDWE (Linux 6.3)', '0', 'mdwe', 'it gave up the right to change its code, .*PR_SET_MDWE'],
  ])('its code may not be changed: %s', (_, error, call, why) => {
    if (spawnSync(at('deny'), [error, call, 'true']).status === 3) return
    expect(reasons(['./deny', error, call, './inside'], said)).toEqual([hidden('inside', why)])
  })

  linuxTest('a compiler made copies of its functions, or no functions of them', () => {
    expect(reasons(['./copied'], said)).toEqual([
      hidden('copied', '.*copies of functions that the compiler made: .*\\(llama_decode: its calls go to copies'),
    ])
    expect(reasons(['env', './inlined'], said)).toEqual([
      hidden('inlined', 'the compiler made the functions .* a part of their callers: build it without -flto'),
    ])
  })
})

describe('a program whose file is gone', () => {
  linuxTest('before it runs: its functions are found all the same', () => {
    const script = 'cp inside gone; exec 3<gone; rm gone; exec /proc/self/fd/3'
    const { code, stdout, stderr } = run(['record', '-o', 'gone.ggtrace', 'sh', '-c', script])
    expect([code, stdout, stderr]).toEqual([0, 'said\n', expect.stringMatching(/gone\.ggtrace: 2 calls/)])
  })

  linuxTest('while it runs', () => {
    expect(reasons(['./leaving'])).toEqual([
      expect.stringMatching(/\/leaving was replaced or deleted while it ran: run it again/),
    ])
  })
})
