import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import Ajv from 'ajv'
import { at, CLI, NODE, useFolder } from './cli/helpers.ts'
import { runOfCalls } from './cli/runs.ts'
import { inLong } from './long.ts'
import { ROOT } from './root.ts'

/** The workflow of docs/ci.md: its structure, and what its script does with runs of both sides. */

useFolder()

const [, yaml] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/ci.md'), 'utf8'))!

type Yaml = string | readonly Yaml[] | { readonly [key: string]: Yaml }

interface Line {
  readonly indent: number
  readonly text: string
}

/** The part of YAML that workflows are written in: mappings, lists, `{ … }`, quoted texts and `|` blocks. Throws for anything else. */
function parsed(source: string): Yaml {
  const lines = source
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line): Line => ({ indent: line.search(/\S/), text: line.trim() }))
  let at = 0
  const scalar = (text: string): Yaml => {
    if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'")
    if (text.startsWith('"')) return JSON.parse(text)
    if (!text.startsWith('{')) return text
    const fields = [
      ...text.slice(1, -1).matchAll(/\s*([\w-]+): ('(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[^,'"]+?)\s*(?:,|$)/g),
    ]
    return Object.fromEntries(fields.map(([, key, value]) => [key!, scalar(value!)]))
  }
  const block = (indent: number): string => {
    const text: string[] = []
    for (; lines[at] && lines[at]!.indent > indent; at++)
      text.push(' '.repeat(lines[at]!.indent - indent - 2) + lines[at]!.text)
    return `${text.join('\n')}\n`
  }
  const value = (indent: number): Yaml => {
    if (lines[at]!.text.startsWith('- ')) {
      const list: Yaml[] = []
      while (lines[at]?.indent === indent && lines[at]!.text.startsWith('- ')) {
        lines[at] = { indent: indent + 2, text: lines[at]!.text.slice(2) }
        list.push(value(indent + 2))
      }
      return list
    }
    const fields: Record<string, Yaml> = {}
    while (lines[at]?.indent === indent) {
      const [, key, rest] = /^([\w-]+):(?: (.*))?$/.exec(lines[at]!.text) ?? []
      if (key === undefined) throw new Error(`no mapping: ${lines[at]!.text}`)
      at++
      fields[key] = rest === '|' ? block(indent) : rest === undefined ? value(lines[at]!.indent) : scalar(rest)
    }
    return fields
  }
  const whole = value(0)
  if (at < lines.length) throw new Error(`not read: ${lines[at]!.text}`)
  return whole
}

const text = { type: 'string', minLength: 1 }
const texts = { type: 'object', additionalProperties: text }
/** What a workflow with one kind of step may contain (source: docs.github.com, workflow syntax for GitHub Actions). */
const WORKFLOW = {
  type: 'object',
  required: ['on', 'jobs'],
  additionalProperties: false,
  properties: {
    ...{ name: text, on: text },
    permissions: { type: 'object', additionalProperties: { enum: ['read', 'write', 'none'] } },
    jobs: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        required: ['runs-on', 'steps'],
        additionalProperties: false,
        properties: {
          'runs-on': text,
          steps: {
            type: 'array',
            items: {
              type: 'object',
              additionalProperties: false,
              properties: {
                id: text,
                if: text,
                uses: { type: 'string', pattern: '^[\\w-]+/[\\w-]+@v\\d+$' },
                run: text,
                with: texts,
                env: texts,
              },
              oneOf: [{ required: ['uses'] }, { required: ['run'], not: { required: ['with'] } }],
            },
          },
        },
      },
    },
  },
}

type Step = Readonly<Record<string, string>> & { readonly with?: Readonly<Record<string, string>> }
const workflow = parsed(yaml!) as { readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>> }
const { steps } = workflow.jobs['compare']!

test('it is a workflow, which may post to pull requests, and keeps what it writes', () => {
  const validate = new Ajv({ strict: false }).compile(WORKFLOW)
  expect([validate(workflow), validate.errors]).toEqual([true, null])
  expect(validate(parsed(yaml!.replace('runs-on', 'runson')))).toBe(false)
  expect(yaml).toContain('pull-requests: write')
  const kept = steps.find(({ uses }) => uses?.startsWith('actions/upload-artifact'))!.with!['path']!.split('\n')
  expect(kept).toEqual(['logs', 'speed.html', 'verdict.md'])
})

describe('its script', () => {
  const script = steps.find(({ id }) => id === 'verdict')!['run']!

  beforeAll(() => {
    mkdirSync(at('bin'))
    writeFileSync(at('bin/ggml2perfetto'), `#!/bin/sh\nexec ${NODE.join(' ')} '${CLI}' "$@"\n`, { mode: 0o755 })
  })

  /** Runs the script as GitHub does, on runs of which the later side takes so many times as long. */
  function run(name: string, times: number, runs: number) {
    mkdirSync(at(`${name}/logs`), { recursive: true })
    for (let i = 1; i <= runs; i++) {
      writeFileSync(at(`${name}/logs/a-${i}.ggtrace`), runOfCalls(100 + i, 10 + 0.01 * i))
      writeFileSync(at(`${name}/logs/b-${i}.ggtrace`), runOfCalls(200 + i, times * (10 + 0.01 * ((2 * i) % 5))))
    }
    const env = {
      ...process.env,
      PATH: `${at('bin')}:${process.env['PATH']}`,
      GITHUB_STEP_SUMMARY: 'summary.md',
      GITHUB_OUTPUT: 'output',
    }
    const { status, stderr } = spawnSync('bash', ['--norc', '-e', '-c', script], {
      cwd: at(name),
      env,
      encoding: 'utf8',
    })
    const read = (file: string) => readFileSync(at(`${name}/${file}`), 'utf8')
    return { status, stderr, verdict: read('verdict.md'), summary: read('summary.md'), output: read('output') }
  }

  type Case = readonly [name: string, times: number, runs: number, status: number, code: number, verdict: RegExp]
  const isRight = (...[name, times, runs, status, code, verdict]: Case) => {
    const found = run(name, times, runs)
    expect([found.status, found.output, found.summary]).toEqual([status, `code=${code}\n`, found.verdict])
    expect(found.verdict.split('\n').slice(0, 6).join('\n')).toMatch(verdict)
    expect(existsSync(at(`${name}/speed.html`))).toBe(true)
  }

  test('fails where a side is slower, with the verdict and the report', () =>
    isRight('slower', 1.2, 5, 1, 2, /20 % slower/))

  inLong(test).each<Case>([
    ['equal', 1, 5, 0, 0, /slower by more than 5.0 %: no/],
    ['uncertain', 1.2, 2, 0, 3, /3 runs a side would decide/],
  ])('does not fail where the sides are %s', isRight)
})

test('SKILL.md has at most 6 KB, and its name is that of the folder of the package', () => {
  const skill = readFileSync(join(ROOT, 'SKILL.md'), 'utf8')
  expect(Buffer.byteLength(skill)).toBeLessThanOrEqual(6 * 1024)
  expect(skill).toMatch(/^---\nname: ggml2perfetto\ndescription: .{100,1024}\nlicense: Apache-2.0\n---\n/)
})
