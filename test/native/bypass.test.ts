import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { cc } from '../compile.ts'
import { hasLlama } from '../llama/testbed.ts'
import { inFolder, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** Why functions of llama.cpp are not seen: the reason that the log names is the one that is so. */

const llama = hasLlama() ? describe : describe.skip
const SOURCE = fileURLToPath(new URL('../llama/bypass.c', import.meta.url))

llama('calls of llama_decode that pass no hook', () => {
  useRecorder()
  const [library, user, program] = ['libfake-llama.so', 'libuser.so', 'bypass'].map((name) => () => inFolder(name)) as [
    () => string,
    () => string,
    () => string,
  ]
  beforeAll(() => {
    const compile = (...args: string[]) => cc('-O2', SOURCE, ...args)
    compile('-DLIBRARY', '-shared', '-fPIC', '-o', library())
    compile('-DUSER', '-shared', '-fPIC', '-o', user(), library(), `-Wl,-rpath,${dirname(library())}`)
    compile('-o', program(), '-ldl')
  })

  async function missing(way: string, loaded: string): Promise<string | number | undefined> {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: 'token' }
    execFileSync(program(), [way, loaded, library()], { env: { ...process.env, ...env } })
    const { attributes, of } = await readLog(log)
    expect(of('token')).toHaveLength(1)
    return attributes['functions.missing']
  }

  test.each([
    ['address', library, /^all C functions of llama\.cpp: the program calls them by addresses of its own \(dlsym\)$/],
    ['inside', library, /: they are called inside the library that contains them, and bound there$/],
    ['deep', user, /: the library that calls them is bound to them without the recorder \(RTLD_DEEPBIND, /],
    ['linked', user, undefined],
  ])('%s', async (way, loaded, reason) => {
    const found = await missing(way, loaded())
    if (reason === undefined) expect(`${found}`).not.toMatch(/all C functions/)
    else expect(found).toMatch(reason)
  })
})
