import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { buildRecorder, RECORDER, readLog } from './recording.ts'

/**
 * The first call of ggml, while another thread loads a library: the recorder then asks the loader, whose lock that thread has as long as the library's
 * constructors run. They may call ggml, or load a library that contains it.
 */

const canBuild = ['cc', 'make'].every((tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0)
const linux = process.platform === 'linux' && canBuild ? describe : describe.skip

/** What looks like llama.cpp. The recorder asks for its version when it begins: until a constructor runs, there is no answer. */
const LLAMA = `#include <stdatomic.h>
#include <unistd.h>
#include "stand-in.h"
atomic_bool has_begun, is_constructing;
int32_t llama_decode(struct llama_context * context, struct llama_batch batch) { return context ? batch.n_tokens : 0; }
const char * ggml_version(void) {
    atomic_store(&has_begun, 1);
    while (!atomic_load(&is_constructing)) usleep(1000);
    usleep(100000);
    return "test";
}
const char * llama_version(void) { return "test"; }
`
const CALLING = `#include <stdatomic.h>
#include "stand-in.h"
extern atomic_bool is_constructing;
__attribute__((constructor)) static void construct(void) {
    atomic_store(&is_constructing, 1);
    llama_decode(0, (struct llama_batch){.n_tokens = 1});
}
`
const LOADING = `#include <dlfcn.h>
#include <stdatomic.h>
#include <unistd.h>
extern atomic_bool is_constructing;
__attribute__((constructor)) static void construct(void) {
    atomic_store(&is_constructing, 1);
    usleep(200000);
    dlopen(INNER, RTLD_NOW);
}
`
const HIDDEN = `#pragma GCC visibility push(hidden)
#include "stand-in.h"
struct ggml_context * ggml_init(struct ggml_init_params params) { return params.mem_buffer; }
#pragma GCC visibility pop
extern int inner(void);
int inner(void) { return ggml_init((struct ggml_init_params){.mem_buffer = 0}) != 0; }
`
const PROGRAM = `#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "stand-in.h"
extern atomic_bool has_begun, is_constructing;
static void * load(void * path) {
    while (!atomic_load(&has_begun)) usleep(1000);
    return dlopen(path, RTLD_NOW);
}
int main(int count, char ** arguments) {
    if (count != 2) return 1;
    pthread_t thread;
    void * library;
    pthread_create(&thread, NULL, load, arguments[1]);
    llama_decode(0, (struct llama_batch){.n_tokens = 1});
    pthread_join(thread, &library);
    return puts(library ? "loaded" : "not loaded"), 0;
}
`

linux('the first call beside a thread that loads a library (needs linux and cc)', () => {
  let folder = ''
  const inFolder = (name: string) => join(folder, name)

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-first-call-'))
    buildRecorder()
    const compile = (text: string, name: string, ...flags: readonly string[]) => {
      writeFileSync(inFolder('source.c'), text)
      cc('-O1', '-fPIC', '-pthread', inFolder('source.c'), '-o', inFolder(name), ...flags)
    }
    const linked = [`-L${folder}`, '-lllama', `-Wl,-rpath,${folder}`, '-ldl']
    compile(LLAMA, 'libllama.so', '-shared')
    compile(HIDDEN, 'hidden.so', '-shared')
    compile(CALLING, 'calling.so', '-shared', ...linked)
    compile(LOADING, 'loading.so', '-shared', `-DINNER="${inFolder('hidden.so')}"`, ...linked)
    compile(PROGRAM, 'program', ...linked)
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test.each([
    ['its constructor calls ggml', 'calling.so', /calls by a thread that loaded a library .* were not recorded/],
    ['its constructor loads a library with a hidden ggml', 'loading.so', /hidden\.so: all of it, since the process/],
  ])('%s', async (_, library, said) => {
    const log = inFolder(`${library}.ggtrace`)
    const recorder = { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log, GGML2PERFETTO_LIBRARIES: '1' }
    const { status, signal, stdout, stderr } = spawnSync(inFolder('program'), [inFolder(library)], {
      env: { ...process.env, ...recorder },
      encoding: 'utf8',
      timeout: 20_000,
    })
    expect({ status, signal, stdout, stderr }).toEqual({ status: 0, signal: null, stdout: 'loaded\n', stderr: '' })
    const { of, issues, attributes } = await readLog(log)
    const isRefused = library === 'loading.so'
    expect(issues).toEqual(isRefused ? [] : [expect.stringMatching(/: calls by a thread that loaded a library/)])
    expect(of('token')).toHaveLength(1)
    const fact = isRefused ? 'program.refused' : 'calls.left_out'
    expect(attributes[fact]).toMatch(said)
  })
})
