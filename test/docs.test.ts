import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from '@jest/globals'
import { convert, type Input } from '../lib/index.ts'
import { inputOf, openTrace } from '../lib/node.ts'
import type { OpenTrace } from '../lib/sql.ts'
import { targets } from '../scripts/compatibility/targets.mjs'
import { NODE, printedBy, run, useFolder } from './cli/helpers.ts'
import { inLong, inParts, someOf } from './long.ts'
import { counted, everyRecord } from './read/ggtrace-logs.ts'
import { inputOf as inputOfServer, Server } from './requests/server.ts'

/** What README and docs promise is run: the programs, the command with its output, the SQL. */
useFolder()
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const blocks = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map((match) => match[1]!)

const [executable, ...flags] = NODE
const scratch = mkdtempSync(join(tmpdir(), 'ggml2perfetto-docs-'))
afterAll(() => rmSync(scratch, { recursive: true }))
const newFolder = () => mkdtempSync(join(scratch, 'run-'))
const node = (args: string[], cwd = newFolder()) =>
  execFileSync(executable, [...flags, ...args], { cwd, encoding: 'utf8' })

describe('README', () => {
  const readme = read('README.md')

  test('its command on a log prints what it says', () => {
    const block = blocks(readme, 'console').find((text) => text.includes('examples/moe.ggtrace.gz '))
    const [command, ...output] = block!.trimEnd().split('\n')
    const log = join(ROOT, 'examples/moe.ggtrace.gz')
    expect(command).toMatch(/^\$ ggml2perfetto examples\/moe\.ggtrace\.gz /)
    const printed = printedBy(`ggml2perfetto ${log}`, newFolder()).replaceAll(log, 'examples/moe.ggtrace.gz')
    expect(printed.trimEnd().split('\n')).toEqual(output)
  })

  test('its program runs', () => {
    const [program] = blocks(readme, 'js')
    const file = join(ROOT, 'examples', `readme-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
    const folder = newFolder()
    writeFileSync(file, program!.replaceAll("'run.bin'", `'${join(ROOT, 'examples/moe.csv')}'`))
    try {
      expect(node([file], folder)).toContain('TTFT 26.109682 ms')
    } finally {
      execFileSync('rm', [file])
    }
  })
})

inLong(test)('the programs of README and docs/library.md compile as TypeScript under strict', async () => {
  const { typeErrors } = await import('./type-errors.ts')
  const programs = ['README.md', 'docs/library.md'].flatMap((path) => blocks(read(path), 'js'))
  expect(programs.length).toBeGreaterThan(4)
  expect(typeErrors(programs)).toEqual([])
  expect(
    typeErrors(["import { summarizeFile } from 'ggml2perfetto/node'\n(await summarizeFile('x')).calls.ttft_ns / 2"]),
  ).toEqual([expect.stringContaining('docs-0.mts:2: ')])
})

describe('docs/library.md', () => {
  const guide = read('docs/library.md')

  inParts(test).each(someOf(blocks(guide, 'js'), 5))('its program %#: %s', (program) => {
    const file = join(ROOT, 'examples', `library-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
    const folder = newFolder()
    copyFileSync(join(ROOT, 'examples/moe.ggtrace.gz'), join(folder, 'run.ggtrace.gz'))
    writeFileSync(file, program.replace(/command: \[.*\]/, "command: ['true']"))
    try {
      const printed = node([file], folder)
      if (program.includes('record(')) return expect(printed).toMatch(/^exit code 0 no ggml call was seen in true/)
      if (program.includes('console.log')) expect(printed).toMatch(/\d+ bytes|42\.25/)
      else expect(gunzipSync(readFileSync(join(folder, 'run.pftrace.gz'))).length).toBeGreaterThan(100_000)
    } finally {
      rmSync(file)
    }
  })
})

test('the guides have at most 20 000 words, and docs/README.md names each page', () => {
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  )
  const guides = pages.filter((name) => !name.startsWith('reference/'))
  const written = (name: string) => read(`docs/${name}`).replace(/<!-- Made by [\s\S]*?<!-- The end/g, '')
  const words = guides.reduce((sum, name) => sum + written(name).split(/\s+/).length, 0)
  expect(words).toBeLessThanOrEqual(20_000)
  const index = read('docs/README.md')
  expect(pages.filter((name) => name !== 'README.md' && !index.includes(`](${name}`))).toEqual([])
})

describe('docs/reference/perfetto-writer.md', () => {
  const guide = read('docs/reference/perfetto-writer.md')
  const folder = newFolder()
  const ran = (program: string) => {
    const file = join(ROOT, 'examples', `perfetto-${process.pid}.tmp.mjs`) // where 'ggml2perfetto' is this package
    writeFileSync(file, program)
    try {
      return node([file], folder)
    } finally {
      rmSync(file)
    }
  }
  const [queue, small] = blocks(guide, 'js')

  test('the queue of jobs is a program of 30 lines, whose trace answers the SQL', async () => {
    expect(queue!.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(30)
    ran(queue!)
    const trace = await openTrace(join(folder, 'jobs.pftrace'))
    try {
      const rows = trace.query(blocks(guide, 'sql')[0]!).rows.map((row) => [...row])
      expect(rows.map(([name]) => name)).toEqual(['worker 1', 'worker 2'])
      expect(rows.reduce((sum, [, jobs]) => sum + Number(jobs), 0)).toBe(8)
      expect(Math.max(...rows.map(([, , , widest]) => Number(widest)))).toBe(800)
      const arrows = `SELECT count(*) FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in
        WHERE o.name = 'job ' || extract_arg(i.arg_set_id, 'debug.id')`
      expect(trace.query(arrows).rows).toEqual([[8]])
    } finally {
      trace.close()
    }
  })

  inLong(test)('its other program', () => {
    expect(ran(small!)).toContain('1500000')
  })

  inLong(test)('its programs compile as TypeScript', async () => {
    const { typeErrors } = await import('./type-errors.ts')
    expect(typeErrors([small!])).toEqual([])
  })
})

describe('docs/reference/compatibility.md', () => {
  const guide = read('docs/reference/compatibility.md')

  test('its table has the targets of scripts/compatibility.mjs, and what was recorded or why nothing was', () => {
    const [table] = /(?:^\|.*\n)+/m.exec(guide)!
    const [head, , ...rows] = table
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(2, -2).split(' | '))
    expect(rows.map(([program, , from]) => [program, from])).toEqual(targets.map(({ name, from }) => [name, from]))
    for (const [i, cells] of rows.entries()) {
      const missed = cells[3]!.startsWith('not available: ')
      expect(`${cells[0]}: ${missed || targets[i]!.kind !== 'none'}`).toBe(`${cells[0]}: true`)
      if (!missed) expect(cells.filter((cell) => cell.trim() !== '')).toHaveLength(head!.length)
    }
    expect(guide).not.toContain('failed: ')
  })
})

inLong(describe)('docs/reference/tracks.md', () => {
  const files = [
    'examples/moe.csv',
    'test/fixtures/tensor-trace/moe-2threads.bin.gz',
    'test/fixtures/nsys/one-gpu.sqlite.gz',
    'examples/moe.ggtrace.gz',
  ]
  const served = new Server(2, 32).run([
    { prompt: 60, reused: 0, generate: 4, drafts: 0, slot: 0, afterSteps: 0 },
    { prompt: 40, reused: 0, generate: 4, drafts: 2, slot: 1, afterSteps: 1 },
  ])
  const made = [
    { name: 'counted', source: counted() },
    { name: 'gpu', source: everyRecord() },
    inputOfServer(served.events),
  ]
  const logs = [...files.map((path) => inputOf(join(ROOT, path))), ...made]
  const traces = new Map<Input, OpenTrace>()
  /** As the queries that need them say. */
  const OPTIONS = { memory: 'lifetimes', detail: 'full', flows: { token: 1 } } as const

  test.each(blocks(read('docs/reference/tracks.md'), 'sql'))('query %#: %s', async (sql) => {
    let found = 0
    for (const log of logs) {
      if (!traces.has(log)) traces.set(log, await openTrace(convert(log, OPTIONS)))
      found += traces.get(log)!.query(sql).rows.length
    }
    expect(found).toBeGreaterThan(0)
  })
})

test('docs/reference/tracks.md describes each argument of a trace at --detail full', async () => {
  const documented = new Set([...read('docs/reference/tracks.md').matchAll(/`([a-z_]\w*)`/g)].map(([, name]) => name))
  const trace = await openTrace(convert(inputOf(join(ROOT, 'examples/moe.ggtrace.gz')), { detail: 'full' }))
  const { rows } = trace.query("select distinct replace(key, 'debug.', '') from slice join args using (arg_set_id)")
  const names = rows.map(([key]) => String(key).replace(/^src\d+(_(?!type)|$)/, (_, rest) => (rest ? '' : 'src0')))
  expect(names.filter((name) => !documented.has(name))).toEqual([])
  trace.close()
})

test.each([
  ['open', ['docs/opening.md']],
  ['record', ['docs/recording.md', 'docs/reference/recorder.md']],
])('all options of %s are in %s', (command, paths) => {
  const help = run(['help', command]).stdout
  const options = [...help.matchAll(/^ {2}(?:-\w,| {3}) (--[\w-]+)/gm)].map(([, option]) => option!)
  expect(options.length).toBeGreaterThan(10)
  const guide = paths.map(read).join('')
  const missing = options.filter((option) => !guide.includes(option) && !guide.includes(`--no-${option.slice(2)}`))
  expect(missing).toEqual(['--help'])
})

describe('examples', () => {
  const examples = readdirSync(join(ROOT, 'examples')).filter(
    (name) => name.endsWith('.mjs') && !name.includes('.tmp.'),
  )

  test('custom-format.mjs draws a log of its own', () => {
    const printed = node([join(ROOT, 'examples/custom-format.mjs')])
    expect(printed.match(/'operator'/g)).toHaveLength(3)
    expect(printed).toContain("[ 19000, 0, 'not a line of ours', 'issue' ]")
  })

  const others = examples.filter((name) => name !== 'custom-format.mjs').sort()
  inParts(test).each(someOf(others, 3, 1))('%s runs and prints', (name) => {
    expect(node([join(ROOT, 'examples', name), join(ROOT, 'examples/moe.csv')])).toMatch(/MUL_MAT/)
  })

  test('the library loads as CommonJS, too', () => {
    const script = `require('ggml2perfetto/node').summarizeFile('${join(ROOT, 'examples/moe.csv')}').then((s) => console.log(s.operators))`
    expect(node(['-e', script], ROOT)).toBe('2664\n')
  })
})
