import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { expect } from '@jest/globals'
import { at, folder, run } from './helpers.ts'
import { canRun, linuxTest, unless, useProgram } from './record-helpers.ts'

/** `record --print-env`: for programs that a container or a service manager starts. */

useProgram()

/** The variables that it prints. */
const printed = (...options: string[]) => {
  const { code, stdout, stderr } = run(['record', '--print-env', '-q', ...options])
  expect([code, stderr]).toEqual([0, ''])
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => [...(/^(\w+)=(.*)$/.exec(line) ?? [])].slice(1)),
  )
}

const logsOf = (name: string) =>
  readdirSync(folder)
    .filter((file) => file.startsWith(name))
    .sort()

linuxTest('a program records itself with the variables that are printed', () => {
  const variables = printed('-o', at('self.ggtrace'), '--level', 'token', '--max-size', '8M', '--ring')
  expect(variables).toMatchObject({ GGML2PERFETTO_LEVEL: 'token', GGML2PERFETTO_MAX_BYTES: '8388608' })
  const { status, stdout } = spawnSync(at('caller'), { env: { ...process.env, ...variables }, encoding: 'utf8' })
  expect([status, stdout]).toEqual([0, 'said\n'])
  const { stdout: info } = run(['info', at('self.ggtrace')])
  expect(info).toMatch(/calls +2 calls/)
  expect(info).toMatch(/recorded.last bytes +8388608/)
})

unless(!canRun('unshare', '-pf', 'true'))('each start has its own log, also with the same number (needs root)', () => {
  const variables = printed('-o', at('again.ggtrace'), '--no-states')
  for (let start = 0; start < 4; start++)
    spawnSync('unshare', ['-pf', 'env', at('caller')], { env: { ...process.env, ...variables } })
  expect(logsOf('again')).toEqual(['again.ggtrace', 'again.ggtrace.1', 'again.ggtrace.1.2', 'again.ggtrace.1.3'])
})

linuxTest('refuses what it cannot print', () => {
  const refused = (...args: string[]) => {
    const { code, stderr } = run(['record', '--print-env', ...args])
    return [code, stderr.split('\n')[0]]
  }
  expect(refused()).toEqual([1, 'error: --print-env: expected the path of the log, too'])
  expect(refused('-o', 'a.ggtrace')).toEqual([1, 'error: a.ggtrace: expected an absolute path, as the program sees it'])
  expect(refused('-o', '/a.ggtrace', '--', 'true')).toEqual([
    1,
    'error: --print-env: expected no program, it runs nothing',
  ])
  expect(refused('-o', '/a.ggtrace', '--sched')).toEqual([1, 'error: --print-env: not possible with --sched'])
  expect(refused('-o', '/a.ggtrace', '--ring')).toEqual([1, 'error: --ring: expected a size, too'])
})
