import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { afterAll, expect } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { inLong } from '../long.ts'
import { at, CLI, NODE, run } from './helpers.ts'
import { linuxTest, rootTest, useProgram } from './record-helpers.ts'

/** Recordings that write the same log, those that were killed, and whose the files are. */

useProgram()

const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Calls ggml once, and ends when the file `go` is there. */
const waiting = (go: string) => [
  'sh',
  '-c',
  `./caller; touch ${go}.begun ${go}.begun.$$; until [ -e ${go} ]; do sleep 0.05; done`,
]
const recordings = (output: string, go: string, count = 1) =>
  Array.from({ length: count }, () => {
    const [node, ...flags] = NODE
    const args = [...flags, CLI, 'record', '-q', '-o', output, '--', ...waiting(go)]
    const child = spawn(node, args, { cwd: at('.'), stdio: ['ignore', 'ignore', 'pipe'] })
    children.push(child)
    let stderr = ''
    child.stderr.on('data', (text) => (stderr += text))
    return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, stderr })) }
  })
const until = async (path: string) => {
  while (!existsSync(at(path))) await new Promise((done) => setTimeout(done, 20))
}
const hidden = (folder = '.') => readdirSync(at(folder)).filter((name) => name.startsWith('.'))
const callsIn = async (path: string) => (await summarize(inputOf(at(path)))).calls.by_phase.decode!.calls

const REFUSED =
  /^error: (\S+): cannot write: another recording \(process \d+\) writes it\nhint: name another file with -o\n$/

for (const isOlder of [false, true]) {
  const declare = isOlder ? inLong(linuxTest) : linuxTest
  declare(
    `a second recording of the same log${isOlder ? ', which replaces an older one,' : ''} is refused`,
    async () => {
      const name = `second-${isOlder}`
      if (isOlder)
        expect(run(['record', '-q', '-o', `${name}.ggtrace`, '--', './caller'], { cwd: at('.') }).code).toBe(0)
      const [first] = recordings(`${name}.ggtrace`, name)
      await until(`${name}.begun`)
      // By another path, too.
      for (const path of [`${name}.ggtrace`, at(`${name}.ggtrace`)]) {
        const { code, stderr } = run(['record', '-q', '-o', path, '--', './caller'], { cwd: at('.') })
        expect([code, stderr]).toEqual([1, expect.stringMatching(REFUSED)])
      }
      expect(run(['record', '-q', '-o', `${name}-other.ggtrace`, '--', './caller'], { cwd: at('.') }).code).toBe(0)
      writeFileSync(at(name), '')
      expect(await first!.ended).toEqual({ code: 0, stderr: '' })
      expect(await callsIn(`${name}.ggtrace`)).toBe(2)
      expect(hidden()).toEqual([])
    },
  )
}

linuxTest('of recordings that begin at once at most one writes the log, and others say so', async () => {
  const all = recordings('once.ggtrace', 'once', 3)
  let ended = 0
  for (const one of all) void one.ended.then(() => ended++)
  const begun = () => readdirSync(at('.')).filter((name) => name.startsWith('once.begun.')).length
  while (begun() + ended < all.length) await new Promise((done) => setTimeout(done, 20))
  writeFileSync(at('once'), '')
  const outcomes = await Promise.all(all.map((one) => one.ended))
  const failed = outcomes.filter(({ code }) => code !== 0)
  for (const outcome of failed) expect(outcome).toEqual({ code: 1, stderr: expect.stringMatching(REFUSED) })
  expect(failed.length).toBeGreaterThanOrEqual(2)
  if (failed.length === 2) expect(await callsIn('once.ggtrace')).toBe(2)
  expect(hidden()).toEqual([])
})

linuxTest('a recording that was killed refuses no later one', async () => {
  const [first] = recordings('killed.ggtrace', 'killed')
  await until('killed.begun')
  first!.child.kill('SIGKILL')
  writeFileSync(at('killed'), '') // the program ends, too
  await first!.ended
  expect(hidden()).toHaveLength(1)
  expect(run(['record', '-q', '-o', 'killed.ggtrace', '--', './caller'], { cwd: at('.') }).code).toBe(0)
  expect(hidden()).toEqual([])
})

const SUDO = { SUDO_UID: '65534', SUDO_GID: '65533' }
const owner = (path: string) => {
  const { uid, gid } = statSync(path)
  return [uid, gid]
}

rootTest('under sudo, meters and page faults belong to the caller, as the log does (needs root)', () => {
  const args = ['record', '-q', '--power', '--mem', '-o', 'sudo.ggtrace', '--', './caller']
  expect(run(args, { cwd: at('.'), env: SUDO }).code).toBe(0)
  const made = readdirSync(at('.')).filter((name) => name.startsWith('sudo.'))
  expect(made).toContain('sudo.ggtrace')
  for (const name of made) expect([name, ...owner(at(name))]).toEqual([name, 65534, 65533])
})
