import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { buildRecorder, RECORDER } from './recording.ts'

/** Libraries that a program loads: the recorder looks at them (native/recorder/hooks-libraries.c), and the loader finds the same ones. */

const canBuild = ['cc', 'make'].every((tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0)
const linux = process.platform === 'linux' && canBuild ? describe : describe.skip

const FOUND = 'int found(void); int found(void) { return 7; }\n'
const BETWEEN = 'int found(void), between(void); int between(void) { return found(); }\n'
/** Where the loader searches depends on the library that calls. */
const OPENER = `#include <dlfcn.h>
#include <stdio.h>
void open_by_library(const char * file);
void open_by_library(const char * file) {
    void * library = dlopen(file, RTLD_NOW);
    printf("%s\\n", library && dlsym(library, "found") ? "found" : "not found");
}\n`
const PROGRAM = `void open_by_library(const char * file);
int main(int count, char ** arguments) { return open_by_library(arguments[count - 1]), 0; }\n`

linux('libraries that a program loads (needs linux and cc)', () => {
  let folder = ''
  const inFolder = (...names: readonly string[]) => join(folder, ...names)

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-loaded-'))
    buildRecorder()
    const compile = (text: string, name: string, ...flags: readonly string[]) => {
      writeFileSync(inFolder('source.c'), text)
      cc('-O1', '-fPIC', inFolder('source.c'), '-o', inFolder(name), ...flags)
    }
    for (const name of ['deep', 'other', 'new', 'old']) mkdirSync(inFolder(name))
    compile(FOUND, 'deep/libfound.so', '-shared')
    compile(BETWEEN, 'other/libbetween.so', '-shared', `-L${inFolder('deep')}`, '-lfound')
    for (const [tags, kind] of [
      ['new', '--enable-new-dtags'], // DT_RUNPATH
      ['old', '--disable-new-dtags'], // DT_RPATH
    ] as const) {
      compile(OPENER, `${tags}/libopener.so`, '-shared', `-Wl,-rpath,${inFolder('deep')},${kind}`, '-ldl')
      compile(
        PROGRAM,
        `${tags}/program`,
        `-L${inFolder(tags)}`,
        '-lopener',
        `-Wl,-rpath,${inFolder(tags)},--enable-new-dtags`,
      )
    }
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test.each([
    ['a name, by the search path of the library that calls', 'new', 'libfound.so', 'found'],
    ['the same, by DT_RPATH', 'old', 'libfound.so', 'found'],
    ['what a library needs, by no search path of the library that calls', 'old', 'other/libbetween.so', 'not found'],
    ['a path', 'new', 'deep/libfound.so', 'found'],
  ])('%s', (_, tags, file, expected) => {
    const path = file.includes('/') ? inFolder(file) : file
    const open = (env: Readonly<Record<string, string>>) => {
      const { status, stdout, stderr } = spawnSync(inFolder(tags, 'program'), [path], {
        env: { ...process.env, ...env },
        encoding: 'utf8',
      })
      return { status, stdout, stderr }
    }
    const wanted = { status: 0, stdout: `${expected}\n`, stderr: '' }
    expect(open({})).toEqual(wanted)
    const recorder = { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: inFolder('run.ggtrace'), GGML2PERFETTO_LIBRARIES: '1' }
    expect(open(recorder)).toEqual(wanted)
  })
})
