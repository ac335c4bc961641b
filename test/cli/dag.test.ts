import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Dag, DagDiff } from '../../lib/analysis.ts'
import { at, run, useFolder } from './helpers.ts'

/** `dag`, built, as users run it. */

useFolder()
const examples = fileURLToPath(new URL('../../examples', import.meta.url))
const [MOE, LLAMA, QWEN2] = ['moe', 'llama', 'qwen2'].map((name) => join(examples, `${name}.ggtrace.gz`)) as [
  string,
  string,
  string,
]

const dag = (...args: readonly string[]): string => {
  const { code, stdout, stderr } = run(['dag', ...args])
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const refused = (...args: readonly string[]): string => {
  const { code, stdout, stderr } = run(['dag', ...args])
  expect([code, stdout]).toEqual([1, ''])
  return stderr
}

let whole: Dag
beforeAll(() => {
  whole = JSON.parse(dag(MOE, '--json'))
})

test('a table for people: each part once, the time of all', () => {
  const lines = dag(MOE).split('\n')
  expect(lines.filter((line) => /^\S/.test(line))).toEqual([
    'graph',
    'in no layer',
    'layers 0–4; figures are means of 5, shares are of all',
    'layer 5',
    ...lines.filter((line) => line.startsWith('columns left out')),
  ])
  const shares = lines.map((line) => Number(/ (\d+\.\d) % /.exec(`${line} `)?.[1] ?? 0))
  expect(shares.reduce((sum, share) => sum + share)).toBeGreaterThan(95)
  const [first] = dag(MOE, '--layers', '3', '--top', '5').split('most time\n')[1]!.split('\n').slice(1)
  const heaviest = whole.nodes.filter(({ layer }) => layer === 3).sort((a, b) => b.wall_ns! - a.wall_ns!)[0]!
  expect(first!.trim().split(/\s+/).slice(0, 3)).toEqual([`${heaviest.id}`, heaviest.name, heaviest.op])
})

test('files: DOT and JSON have every node, SVG what is chosen; - is DOT', () => {
  expect(dag(MOE, '-o', at('x.json'))).toMatch(
    /^call \d+ \(decode, 1 token\): \d+ nodes in .*, most of it .* %\nwrote .*x\.json'? \(\d+ KiB\)\n$/,
  )
  expect(JSON.parse(readFileSync(at('x.json'), 'utf8'))).toEqual(whole)
  dag(MOE, '-o', at('x.dot'))
  const dot = readFileSync(at('x.dot'), 'utf8')
  expect(dag(MOE, '-o', '-')).toBe(dot)
  expect(dot.match(/^ +n\d+ \[/gm)!.length).toBe(whole.nodes.length)
  expect(dot.match(/^ +\w+ -> /gm)!.length).toBe(whole.edges.length)
  const nodesIn = (name: string, kind = 'node') => readFileSync(at(name), 'utf8').split(`class="${kind}"`).length - 1
  dag(MOE, '-o', at('x.svg'))
  const shown = whole.nodes.filter(({ kind }) => kind !== 'view').length
  const leaves = whole.leaves.filter(({ kind }) => kind !== 'weight').length
  expect(nodesIn('x.svg')).toBe(shown + leaves)
  dag(MOE, '--weights', '--views', '-o', at('all.svg'))
  expect([nodesIn('all.svg'), nodesIn('all.svg', 'edge')]).toEqual([
    whole.nodes.length + whole.leaves.length,
    whole.edges.length,
  ])
  dag(MOE, '--collapse', '-o', at('x.svg')) // replaces the older one
  expect(nodesIn('x.svg')).toBeLessThan(100)
})

test('a stored Analysis has the same graph', () => {
  const { stdout } = run(['stats', MOE, '--json', '--series', 'graph'])
  writeFileSync(at('run.json'), stdout)
  expect(JSON.parse(dag(at('run.json'), '--json'))).toEqual(whole)
  expect(refused(at('run.json'), '--call', '3')).toMatch(
    /: contains the graph of call 2 only\nhint: --call is for logs\n$/,
  )
  writeFileSync(at('plain.json'), run(['stats', MOE, '--json']).stdout)
  expect(refused(at('plain.json'))).toMatch(
    /plain.json: contains no series of graph\nhint: ggml2perfetto stats <logs> --series graph --json/,
  )
})

describe('colours from a CSV', () => {
  const table = (csv: string) => {
    writeFileSync(at('v.csv'), csv)
    return ['--color-csv', at('v.csv')]
  }

  test('by name, or by name and op; columns in any order', () => {
    const rows = (csv: string) =>
      dag(MOE, '--layers', '2', '--top', '9', ...table(csv))
        .split('\n')
        .filter((line) => /^ +\d+ /.test(line))
        .map((line) => line.trim().split(/\s+/))
        .map((cells) => [cells[1], cells[2], cells.at(-1)])
    expect(rows('Qcur-2,1.5\n')).toEqual([
      ['Qcur-2', 'MUL_MAT', '1.5'],
      ['Qcur-2', 'ROPE', '1.5'],
    ])
    expect(rows('\ufeffcycles,op,name\r\n2,ROPE,"Qcur-2"\r\n\r\n30,MUL_MAT,Kcur-2\r\n')).toEqual([
      ['Kcur-2', 'MUL_MAT', '30'],
      ['Qcur-2', 'ROPE', '2'],
    ])
  })

  test('what is wrong with it', () => {
    expect(refused(MOE, ...table('Qcur-2,1\nKcur-2,many\n'))).toMatch(
      /v.csv: line 2: "many" is not a number; expected name,value\n$/,
    )
    expect(refused(MOE, ...table('a,1\n'))).toMatch(
      /no node has a name of .*v.csv\nhint: a name is a tensor's, such as embd\n$/,
    )
    expect(refused(MOE, ...table('\n'))).toMatch(/v.csv: no lines; expected name,value\n$/)
    expect(refused(MOE, '--color-csv', at('none.csv'))).toMatch(/none.csv: cannot read: no such file or directory\n$/)
  })
})

test('--diff: a table, JSON, DOT and SVG', () => {
  const text = dag('--diff', LLAMA, QWEN2)
  expect(text.match(/^ {2}\+ +[QKV]cur +ADD .* reads [QKV]cur MUL_MAT, weight attn_[qkv]\.bias$/gm)!.length).toBe(6)
  const { parts }: DagDiff = JSON.parse(dag('--diff', LLAMA, QWEN2, '--json'))
  const counts = (['a', 'b'] as const).map(
    (side) => parts.flatMap(({ nodes }) => nodes.flatMap((node) => node[side]?.ids ?? [])).length,
  )
  expect(counts).toEqual([LLAMA, QWEN2].map((log) => (JSON.parse(dag(log, '--json')) as Dag).nodes.length))
  for (const name of ['d.dot', 'd.svg']) {
    dag('--diff', LLAMA, QWEN2, '-o', at(name))
    expect(readFileSync(at(name), 'utf8').match(/(?<=[">])\+ [QKV]cur/g)!.length).toBe(6)
  }
  expect(dag('--diff', MOE, MOE)).toMatch(/the structure of both graphs is the same/)
})

test('--diff of models of different sizes: shapes are one line', () => {
  const text = dag('--diff', MOE, LLAMA, '--call', '0')
  expect(text).toMatch(/^ {2}− +ffn_moe_up +MUL_MAT_ID /m)
  expect(text).toMatch(/^ {2}\d+ nodes with another shape, such as \S+ [A-Z_]+: 1024×16 → 512×8$/m)
  expect(text.match(/^ {2}~ .* shape: /gm)!.length).toBeLessThan(15) // those whose time differs most
})

test('Graphviz is loaded by what draws only', () => {
  const chunks = fileURLToPath(new URL('../../dist/chunks/', import.meta.url))
  const modules = readdirSync(chunks).filter((name) => name.endsWith('.js'))
  const library = modules.map((name) => readFileSync(join(chunks, name), 'utf8')).join('\n')
  expect(library.match(/.{13}['"]@hpcc-js.wasm-graphviz['"]/g)).toEqual(["await import('@hpcc-js/wasm-graphviz'"])
})

test('mistakes', () => {
  const mistakes: Readonly<Record<string, readonly string[]>> = {
    '-o x.png: expected a name that ends in .svg, .dot, .gv or .json, or - for DOT': [MOE, '-o', 'x.png'],
    '--collapse is for SVG, not for DOT; DOT always has every node': [MOE, '--collapse', '-o', 'x.gv'],
    '--collapse is for SVG, not for the table': [MOE, '--collapse'],
    '--scale is for SVG, DOT, not for the table': [MOE, '--scale', 'log'],
    '--top is for the table, not for SVG': [MOE, '--top', '3', '-o', 'y.svg'],
    '--no-views is for SVG and the table; DOT always has every node': [MOE, '--no-views', '-o', '-'],
    '--json prints JSON, and -o writes a file: expected one of them; -o x.json is JSON, too': [
      MOE,
      '--json',
      '-o',
      'y.json',
    ],
    '--color-by and --color-csv: expected one of them': [MOE, '--color-by', 'gbps', '--color-csv', 'v.csv'],
    '--weights is for one graph, not for --diff': ['--diff', MOE, MOE, '--weights', '-o', 'y.svg'],
    '--diff compares two graphs; found 1 input': ['--diff', MOE],
    '--layers "5..3": expected 3..5 (both included), 7 (one) or 2.. (to the end)': [MOE, '--layers', '5..3'],
    [`${MOE}: no nodes in this range\nhint: its graph has layers 0..5 and nodes 0..287`]: [MOE, '--layers', '6..'],
    'moe.ggtrace.gz: no operators of call 99 were recorded\nhint: ggml2perfetto stats moe.ggtrace.gz --calls lists calls':
      ['moe.ggtrace.gz', '--call', '99'],
  }
  writeFileSync(at('moe.ggtrace.gz'), readFileSync(MOE))
  for (const [message, args] of Object.entries(mistakes)) expect(refused(...args)).toBe(`error: ${message}\n`)
  expect(existsSync(at('y.svg'))).toBe(false)
  writeFileSync(at('log.svg'), readFileSync(MOE))
  expect(refused(at('log.svg'), '-o', at('log.svg'))).toMatch(/is the input itself, which would be lost/)
})

test('a log without sources: nodes, no edges, and a note', () => {
  const log = fileURLToPath(new URL('../fixtures/tensor-trace/warm-up.bin', import.meta.url))
  const { code, stdout, stderr } = run(['dag', log])
  expect([code, stderr]).toEqual([
    0,
    `note: ${log}: no edges between nodes: the log does not contain which node computed the sources of others\n`,
  ])
  expect(stdout).toContain('embd')
})
