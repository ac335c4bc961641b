import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, CLI, folder, MOE, names, run } from './helpers.ts'
import { canRecord, compile, linuxTest, rootTest, useProgram, WITH_LLAMA } from './record-helpers.ts'

/** Files that are written: whose they are, who may read them, and what they replace. */

useProgram()

/** Waits for a line on standard input, then computes, says so, and waits for another one. */
const WAITS = `#include <stdio.h>
#include "stand-in.h"
int main(void) {
  struct llama_batch batch = {.n_tokens = 1};
  puts("ready"); fflush(stdout);
  if (getchar() != '\\n') return 1;
  llama_decode(0, batch);
  puts("computed"); fflush(stdout);
  return getchar() != '\\n';
}`

beforeAll(() => {
  if (canRecord) compile('waits', WAITS, ...WITH_LLAMA())
})

const mode = (name: string) => (statSync(at(name)).mode & 0o777).toString(8)
const isLog = (name: string) => readFileSync(at(name)).subarray(0, 4).toString() === 'GGT0'

/** Ways to write a file of that name, as arguments of the CLI. */
const WRITERS: readonly (readonly [what: string, args: (name: string) => string[]])[] = [
  ['a trace', (name) => [MOE, '-q', '--force', '-o', name]],
  ...(canRecord
    ? [['a log', (name: string) => ['record', '-q', '--force', '-o', name, '--', './caller']] as const]
    : []),
]

const cli = (args: readonly string[], { umask = '022', env = {} } = {}) => {
  const before = process.umask(Number.parseInt(umask, 8))
  try {
    const { code, stderr } = run(args, { env })
    return { code, stderr }
  } finally {
    process.umask(before)
  }
}

describe.each(WRITERS)('%s', (what, args) => {
  const name = (part: string) => `${what.replace(' ', '-')}-${part}`

  linuxTest('has the rights that the umask leaves', () => {
    for (const [umask, expected] of [
      ['022', '644'],
      ['077', '600'],
      ['002', '664'],
    ] as const) {
      expect(cli(args(name(umask)), { umask })).toEqual({ code: 0, stderr: '' })
      expect(mode(name(umask))).toBe(expected)
    }
  })

  linuxTest('has no more rights than the older file that it replaces', () => {
    writeFileSync(at(name('private')), 'older')
    chmodSync(at(name('private')), 0o600)
    expect(cli(args(name('private')))).toEqual({ code: 0, stderr: '' })
    expect([mode(name('private')), statSync(at(name('private'))).size > 100]).toEqual(['600', true])
  })

  rootTest('belongs under sudo to the user who called it', () => {
    const env = { SUDO_UID: '65534', SUDO_GID: '65533' }
    for (const part of ['sudo', 'sudo']) {
      expect(cli(args(name(part)), { env })).toEqual({ code: 0, stderr: '' })
      const { uid, gid } = statSync(at(name(part)))
      expect([uid, gid]).toEqual([65534, 65533])
    }
  })

  rootTest('goes through no link of another user in a folder that everybody may write to', () => {
    const shared = name('shared')
    mkdirSync(at(shared))
    chmodSync(at(shared), 0o1777)
    mkdirSync(at(name('ours')))
    writeFileSync(at(name('ours/file')), 'ours', { mode: 0o600 })
    const asOther = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    chmodSync(folder, 0o755)
    const link = (to: string, from: string) =>
      execFileSync(asOther[0]!, [...asOther.slice(1), 'ln', '-s', to, at(`${shared}/${from}`)])
    link(at(name('ours/file')), 'file')
    link(at(name('ours')), 'folder')
    cli(args(`${shared}/file`))
    expect(cli(args(`${shared}/folder/file`))).toEqual({ code: 1, stderr: expect.stringMatching(REFUSED) })
    expect(cli(args(`${shared}/folder/new`))).toEqual({ code: 1, stderr: expect.stringMatching(REFUSED) })
    expect(execFileSync('ls', [at(name('ours'))], { encoding: 'utf8' })).toBe('file\n')
    expect([String(readFileSync(at(name('ours/file')))), mode(name('ours/file'))]).toEqual(['ours', '600'])
  })
})

rootTest('a dataset belongs under sudo to the user who called it (needs root)', () => {
  mkdirSync(at('datasets'))
  const env = { SUDO_UID: '65534', SUDO_GID: '65533' }
  expect(cli(['export', MOE, '-q', '-o', 'datasets/new/one'], { env })).toEqual({ code: 0, stderr: '' })
  const found = readdirSync(at('datasets'), { recursive: true, encoding: 'utf8' }).map((name) => `datasets/${name}`)
  expect(found.length).toBeGreaterThan(10)
  for (const name of found) {
    const { uid, gid } = statSync(at(name))
    expect([name, uid, gid]).toEqual([name, 65534, 65533])
  }
  expect(statSync(at('datasets')).uid).toBe(0)
})

const REFUSED =
  /cannot write: .* is a symbolic link of another user \(uid 65534\), in a folder that everybody may write to/

describe('links', () => {
  test('a trace goes to the file behind a link of our own', () => {
    symlinkSync('behind', at('own-link'))
    for (const _ of [1, 2]) expect(cli([MOE, '-q', '--force', '-o', 'own-link'])).toEqual({ code: 0, stderr: '' })
    expect([readlinkSync(at('own-link')), statSync(at('behind')).size > 1000]).toEqual(['behind', true])
  })

  test('a circle of links is refused', () => {
    symlinkSync('circle-b', at('circle-a'))
    symlinkSync('circle-a', at('circle-b'))
    expect(cli([MOE, '-q', '--force', '-o', 'circle-a'])).toEqual({
      code: 1,
      stderr: 'error: circle-a: cannot write: too many symbolic links\n',
    })
  })

  linuxTest('a log takes the place of a link, and leaves the file behind it alone', () => {
    writeFileSync(at('target'), 'ours')
    symlinkSync('target', at('log-link'))
    expect(cli(['record', '-q', '--force', '-o', 'log-link', '--', './caller'])).toEqual({ code: 0, stderr: '' })
    expect([lstatSync(at('log-link')).isFile(), isLog('log-link'), String(readFileSync(at('target')))]).toEqual([
      ...[true, true, 'ours'],
    ])
  })

  rootTest('a pipe of another user is not written to', () => {
    mkdirSync(at('pipes'))
    chmodSync(at('pipes'), 0o1777)
    chmodSync(folder, 0o755)
    execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'mkfifo', at('pipes/pipe')])
    expect(cli([MOE, '-q', '--force', '-o', 'pipes/pipe'])).toEqual({
      code: 1,
      stderr: expect.stringContaining('is no regular file, but of another user (uid 65534)'),
    })
  })
})

describe('an older log', () => {
  /** Runs `act` at each state of a program that is being recorded over an older log; ends the recorder by SIGKILL. */
  async function killed(name: string, isComputed: boolean) {
    writeFileSync(at(name), 'older')
    const child = spawn(process.execPath, [CLI, 'record', '-q', '--force', '-o', name, '--', './waits'], {
      cwd: folder,
    })
    const lines: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trim().split('\n')))
    const until = async (condition: () => boolean) => {
      for (let i = 0; i < 1000 && !condition(); i++) await sleep(20)
      expect(condition()).toBe(true)
    }
    await until(() => lines.includes('ready'))
    expect(String(read(name))).toBe('older')
    if (isComputed) {
      child.stdin.write('\n')
      await until(() => lines.includes('computed'))
      await until(() => isLog(name))
    }
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    child.stdin.end()
  }
  const read = (name: string) => readFileSync(at(name))

  linuxTest('has its name while there is no new one, also if the recorder is killed', async () => {
    await killed('kept.ggtrace', false)
    expect(String(read('kept.ggtrace'))).toBe('older')
  })

  linuxTest('gives its name to the new one when that begins, also if the recorder is killed', async () => {
    await killed('new.ggtrace', true)
    expect(isLog('new.ggtrace')).toBe(true)
  })

  linuxTest('stays where the program computes nothing, and nothing is left beside it', () => {
    writeFileSync(at('idle.ggtrace'), 'older')
    const before = names()
    expect(cli(['record', '-q', '--force', '-o', 'idle.ggtrace', '--', 'true']).code).toBe(0)
    expect([String(read('idle.ggtrace')), names()]).toEqual(['older', before])
    expect(cli(['record', '-q', '--force', '-o', 'idle.ggtrace', '--', './caller']).code).toBe(0)
    expect([isLog('idle.ggtrace'), names()]).toEqual([true, before])
  })

  linuxTest('is replaced by the first of several processes; others have names of their own', () => {
    writeFileSync(at('many.ggtrace'), 'older')
    const line = './caller; ./caller & ./caller; wait'
    expect(cli(['record', '-q', '--force', '--children', '-o', 'many.ggtrace', '--', 'sh', '-c', line]).code).toBe(0)
    const logs = names().filter((name) => name.includes('many.ggtrace'))
    expect([logs.length, logs.every(isLog), logs[0]]).toEqual([3, true, 'many.ggtrace'])
  })
})
