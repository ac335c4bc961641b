import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { run, useFolder } from '../cli/helpers.ts'
import { NO_CALL } from '../cli/record-helpers.ts'
import { cc } from '../compile.ts'
import { staticPrograms } from '../llama/static.ts'
import { hasLlama, model, type RunOptions, runHosts } from '../llama/testbed.ts'
import {
  expectCalls,
  expectTrace,
  inFolder,
  issuesOf,
  NANO,
  newLog,
  RECORDER,
  readLog,
  recordHosts,
  useRecorder,
} from './recording.ts'

/** Programs that contain ggml and llama.cpp, where the recorder may not change their code, or does not find all of it: what they do stays as it is. */

const canBuild = ['g++', 'make', 'git', 'objcopy', 'strip'].every(
  (tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0,
)
const llama = hasLlama() && canBuild ? describe : describe.skip

useFolder()

llama('programs that contain ggml (needs linux-x64, g++, make, git, npm)', () => {
  useRecorder()
  let programs = ''
  let empty = ''
  let deny = ''
  beforeAll(async () => {
    programs = await staticPrograms(['LEVEL=-O3'])
    empty = inFolder('empty')
    mkdirSync(empty)
    deny = inFolder('deny')
    cc('-O1', '-o', deny, fileURLToPath(new URL('../llama/deny.c', import.meta.url)))
  }, 900_000)

  const CALLS = 6
  const steps = async () => {
    const { path } = await model(NANO)
    return ['load', 0, path, 'open', 0, 2, 'decode', 0, CALLS, 'close', 0, 'free', 0] as const
  }
  const hosts = (options: RunOptions = {}): RunOptions => ({ program: join(programs, 'hosts'), lib: empty, ...options })

  test.each([
    ['a seccomp filter', `${constants.errno.EACCES}`, 'mprotect', 'a seccomp filter refuses changes of its code'],
    ['a seccomp filter that kills', 'kill', 'mprotect', 'a seccomp filter refuses changes of its code'],
    ['PR_SET_MDWE', '0', 'mdwe', 'it gave up the right to change its code'],
  ])('%s: the program runs as without the recorder, and the reason is stated', async (_, error, call, why) => {
    const before = [deny, error, call]
    if (spawnSync(deny, [error, call, 'true']).status === 3) return // an older kernel
    const { log, result } = await recordHosts(await steps(), hosts({ before }))
    expect([result.code, result.calls.length, existsSync(log)]).toEqual([0, CALLS, false])
    const { code, stderr } = run(['record', ...before, join(programs, 'hosts'), empty, ...(await steps()).map(String)])
    expect([code, stderr]).toEqual([0, expect.stringMatching(NO_CALL)])
    expect(stderr).toMatch(`/hosts (static libraries): ${why}`)
    expect(stderr.match(/^ {2}- /gm)).toHaveLength(1)
  })

  test('a file that was deleted before the program ran: each call, graph and node', async () => {
    const script = 'cp "$0" "$GONE"; exec 3<"$GONE"; rm "$GONE"; exec /proc/self/fd/3 "$@"'
    const env = { GONE: inFolder('gone') }
    const { log, result } = await recordHosts(await steps(), hosts({ before: ['sh', '-c', script], env }))
    const recording = await readLog(log)
    expect(issuesOf(recording)).toEqual([])
    expect(recording.attributes['executable']).toMatch(/\/gone \(deleted\)$/)
    expectCalls(recording, result.calls, () => 2)
    await expectTrace(log, recording)
  })

  test('functions whose calls go to copies are named; what passes others is recorded', async () => {
    const copied = inFolder('copied')
    const names = ['llama_decode', 'ggml_cpu_extra_compute_forward']
    const renamed = names.flatMap((name) => ['--redefine-sym', `${name}=${name}.constprop.0`])
    execFileSync('objcopy', [...renamed, join(programs, 'hosts'), copied])
    const { log, result } = await recordHosts(await steps(), hosts({ program: copied }))
    const { of, attributes } = await readLog(log)
    // By llama_context::decode.
    expect([of('token').length, of('operator').length]).toEqual([result.calls.length, 0])
    for (const name of names) expect(attributes['program.refused']).toMatch(`${name}: its calls go to copies`)
    expect(attributes['operators.missing']).toMatch('ggml_cpu_extra_compute_forward was left alone')
    const said = run(['convert', log, '-o', inFolder('copied.pftrace')])
    expect(said.stdout + said.stderr).toMatch(/no operators were seen: .*was left alone/)
    expect(said.stdout + said.stderr).toMatch(/functions of the program that are not seen: .*its calls go to copies/)
  })

  test('stripped, with llama.cpp and with ggml alone: so says the reason, also behind a wrapper', async () => {
    for (const [name, args] of [
      ['hosts', [empty, ...(await steps()).map(String)]],
      ['alone', [empty, 'backend', '5']],
    ] as const) {
      const stripped = inFolder(`stripped-${name}`)
      execFileSync('strip', ['-o', stripped, join(programs, name)])
      for (const wrapper of [[], ['env'], ['sh', '-c', '"$0" "$@"; exit $?']]) {
        const { code, stderr } = run(['record', ...wrapper, stripped, ...args])
        expect([code, stderr]).toEqual([0, expect.stringMatching(NO_CALL)])
        expect(stderr).toMatch(/ggml is built into it \(static libraries\), and it has no symbols/)
      }
    }
  })

  test('a filter costs nothing where the recorder changes no code', async () => {
    const { path } = await model(NANO)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const before = [deny, 'kill', 'mprotect']
    const result = await runHosts(['load', 0, path, 'open', 0, 2, 'decode', 0, CALLS, 'close', 0], {
      before,
      preload: RECORDER,
      env: { GGML2PERFETTO_OUT: log },
    })
    const recording = await readLog(log)
    expect([result.code, recording.issues]).toEqual([0, []])
    expectCalls(recording, result.calls, () => 2)
  })
})
