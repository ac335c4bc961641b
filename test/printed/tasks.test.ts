import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { useFolder } from '../cli/helpers.ts'
import { ROOT } from './collect.ts'
import { makeFiles } from './files.ts'
import { firstLineOf, missing, outputOf } from './workplace.ts'

/** Each task of docs/tasks.md is answered by one command, in its first line: the one that is printed there. */

useFolder()
beforeAll(makeFiles)

const [tasks] = readFileSync(join(ROOT, 'docs/tasks.md'), 'utf8').split('## By what you have')
const ROWS = [...tasks!.matchAll(/^\| (.+?) \| `(.+?)` \| (.+?) \| .* \|$/gm)].map(([, task, command, line]) => ({
  task: task!,
  command: command!,
  line: line!,
}))

/** What is recorded here has other figures than there. */
const RECORDING: readonly (readonly [command: string, line: RegExp])[] = [
  ['--sweep', /^(?:decode: t=\d is recommended, |nothing is recommended)/],
  ['--print-env', /^LD_PRELOAD=\/.*\.so$/],
  ['record ', /^(?:nothing unusual: )?decode [\d., ]+ tok\/s/],
]

/** Other models, and sizes of files: the same words. */
const isOther = (command: string) => / model\.gguf ?/.test(`${command} `)
const withoutNumbers = (text: string) => text.replaceAll(/[\d.]+(?: \d+)*/g, '#')

test.each(ROWS)('$task', ({ command, line }) => {
  if (missing(command) !== undefined) return
  const first = firstLineOf(command.replace(' /logs/', ' $PWD/logs/'))
  const pattern = RECORDING.find(([part]) => command.includes(part))?.[1]
  if (pattern) expect(first).toMatch(pattern)
  else if (isOther(command)) expect(withoutNumbers(first)).toBe(withoutNumbers(line))
  else expect(first).toBe(line)
})

describe.each(['README.md', 'docs/tutorial.md'])('%s', (path) => {
  const blocks = [...readFileSync(join(ROOT, path), 'utf8').matchAll(/```console\n([\s\S]*?)```/g)].map(
    ([, block]) => block!,
  )
  const answers = blocks.flatMap((block) => [...block.matchAll(/^\$ (ggml2perfetto (?:why|compare) .*)\n([^$]*)/gm)])

  test.each(answers.map(([, command, output]) => [command!, output!]))('%s', (command, output) => {
    const printed = outputOf(command)
    for (const part of output.split(/^…$/m)) expect(printed).toContain(part.trim())
  })

  test('has some', () => expect(answers.length).toBeGreaterThan(0))
})

test('each is answered, none by what was written', () => {
  expect(ROWS.filter(({ line }) => line.startsWith('wrote '))).toEqual([])
})

test('there are twenty', () => expect(ROWS).toHaveLength(20))
