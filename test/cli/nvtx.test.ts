import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect } from '@jest/globals'
import { at, run } from './helpers.ts'
import { compile, linuxTest, useProgram } from './record-helpers.ts'

/** NVTX on the command line. What listens, and what is announced, is in test/native/nvtx.test.ts. */

useProgram()

/** Loads what NVTX_INJECTION64_PATH names, as NVTX does, into a process that runs; tells whether that is a listener. */
const LOADS = `#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  void * library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
  if (!library) return 1;
  int (*second)(void *) = (int (*)(void *)) dlsym(library, "InitializeInjectionNvtx2");
  int (*first)(void *) = (int (*)(void *)) dlsym(library, "InitializeInjectionNvtx");
  printf("%d %d\\n", second(NULL), first(NULL));
  return 0;
}`

describe('nvtx', () => {
  linuxTest('prints a library that a running program can load, built once', () => {
    const first = run(['nvtx'])
    expect(first.stderr).toBe('building the NVTX listener with cc, once\n')
    expect(first.stdout).toMatch(/^\/.*\/libggml2perfetto-nvtx\.so\n$/)
    expect(run(['nvtx'])).toMatchObject({ code: 0, stdout: first.stdout, stderr: '' })
    const env = { ...process.env, NVTX_INJECTION64_PATH: first.stdout.trim() }
    compile('loads', LOADS, '-ldl')
    expect(execFileSync(at('loads'), { env, encoding: 'utf8' })).toBe('0 0\n')
  })
})

describe('record', () => {
  const tool = (env: Record<string, string>, ...args: string[]) =>
    run(['record', ...args, 'sh', '-c', 'echo "$NVTX_INJECTION64_PATH"; ./caller > caller.txt; env > children.txt'], {
      env,
    })

  linuxTest('listens to what the program announces, but not to its children', () => {
    expect(tool({}, '-q', '--no-children').stdout).toMatch(/^\/.*\/libggml2perfetto\.so\n$/)
    expect(readFileSync(at('children.txt'), 'utf8')).not.toMatch(/^(NVTX_|LD_PRELOAD=.)/m)
  })

  linuxTest('leaves the tool that was chosen in place, and says so', () => {
    const { stdout, stderr } = tool({ NVTX_INJECTION64_PATH: '/opt/tool.so' })
    expect(stdout).toBe('/opt/tool.so\n')
    expect(stderr).toMatch(
      /^note: NVTX_INJECTION64_PATH is set: NVTX ranges go to \/opt\/tool\.so, and not into the log$/m,
    )
    expect(tool({ NVTX_INJECTION64_PATH: '/opt/tool.so' }, '-q').stderr).not.toContain('NVTX')
  })

  linuxTest('announces calls of an unmodified program as NVTX ranges: they are in the log', () => {
    const { code, stderr } = run(['record', '--nvtx-emit', 'tokens,phases', '-o', 'emitted.ggtrace', './caller'])
    expect(code).toBe(0)
    expect(stderr).toContain('3 NVTX events')
    const sql = `select name, extract_arg(arg_set_id, 'debug.category'), extract_arg(arg_set_id, 'debug.payload')
      from slice where category = 'nvtx' order by ts, name`
    expect(run(['query', '--format', 'csv', 'emitted.ggtrace', sql]).stdout.split('\n').slice(1)).toEqual([
      'decode,phases,0',
      'decode,tokens,0',
      'decode,tokens,1',
      '',
    ])
  })

  linuxTest.each([
    [['--nvtx-emit', 'nodes'], '--nvtx-emit "nodes": expected phases, tokens, graphs or operators'],
    [['--nvtx-emit', 'tokens,'], '--nvtx-emit "": expected phases, tokens, graphs or operators'],
    [['--nvtx-emit', 'operators', '--level', 'graph'], 'nvtx-emit operators: expected level op, found graph'],
    [
      ['--nvtx-emit', 'tokens,graphs', '--level', 'token'],
      'nvtx-emit tokens,graphs: expected level graph, found token',
    ],
  ])('takes only what there is: %s', (args, message) => {
    const { code, stderr } = run(['record', ...args, './caller'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)])
  })
})
