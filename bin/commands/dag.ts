import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import {
  type Dag,
  type Drawing,
  dagOf,
  diffDags,
  draw,
  drawDiff,
  drawSvg,
  METRICS,
  type MetricName,
  type NamedDag,
  type Range,
  sizeOf,
  toDot,
  UsageError,
} from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { diffSections } from '../dag/diff-table.ts'
import { dagLine, dagSections } from '../dag/table.ts'
import { readValues, refuseUnknown } from '../dag/values.ts'
import { inputName } from '../inputs.ts'
import { io } from '../io.ts'
import { FORCE, flag, inputsOf, once, oneOf, READING, seldom, valued, whole } from '../options.ts'
import { checkOutput, writeTrace } from '../output.ts'
import { analysisOf } from '../stats/inputs.ts'
import { toText } from '../stats/section.ts'
import { note, print, printJson, quoted } from '../terminal.ts'
import { plural, size } from '../units.ts'

/** Characters of a line where the output is no terminal. */
const WIDTH = 120
/** Rows of what differs in a part of two graphs. */
const TOP = 20
/** Nodes and edges of which a layout takes a second or so. */
const LARGE = 2500
/** Of which it takes minutes. */
const TOO_LARGE = 15_000

const METRIC_NAMES = Object.keys(METRICS) as MetricName[]
const tristate = (describe: string, byDefault: string) =>
  ({ type: 'boolean', describe, defaultDescription: byDefault }) as const

const OPTIONS = {
  output: {
    alias: 'o',
    ...valued(
      once('--output'),
      'File to write: *.svg, *.dot or *.gv, *.json; - for DOT to stdout',
      'a table for people',
    ),
  },
  call: valued(whole('--call', 0), 'The call whose graph is shown', 'the second decode call'),
  diff: flag('How the graph of the second input differs from that of the first'),
  layers: valued(range('--layers'), 'Only these layers: 3..5 (both included), 7, or 2..', 'all'),
  nodes: valued(range('--nodes'), 'Only nodes with these ids: 10..80', 'all'),
  'color-by': valued(
    oneOf('--color-by', METRIC_NAMES),
    `Figure that colours nodes: ${METRIC_NAMES.join(', ')}`,
    'time',
  ),
  'color-csv': seldom(
    valued(once('--color-csv'), 'CSV file that colours nodes, - for stdin: lines name,value or name,op,value'),
  ),
  scale: seldom(valued(oneOf('--scale', ['linear', 'log']), 'Scale of the colours: linear or log', 'by figure')),
  collapse: seldom(flag('SVG: draw layers of the same structure once, with the mean of each figure')),
  weights: seldom(tristate('Weights as nodes', 'in DOT; not in SVG')),
  views: seldom(tristate('Views as nodes', 'in DOT; not in SVG')),
  'edge-shapes': seldom(flag('SVG and DOT: write the shape of the data at each edge')),
  top: valued(
    whole('--top'),
    'Table: only so many nodes, the most --color-by first; of --diff, rows of each part and change',
  ),
  json: flag('Print JSON; docs/reference/graphs.md describes it'),
  ...FORCE,
  ...READING,
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  inputs: string[]
}

/** Arguments under the names that yargs gives them, too: `colorBy`. */
type Given = ArgumentsCamelCase<Arguments>

/** `ggml2perfetto dag <logs…>` */
export const dagCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.dag,
  builder: (yargs) =>
    yargs
      .positional(
        'inputs',
        inputsOf(
          "Log, gzip'ed or not, or an Analysis with a graph (stats --series graph --json); - for stdin. With --diff, two of them",
        ),
      )
      .options(OPTIONS)
      .example('$0 dag run.ggtrace', 'a table of nodes; layers of the same structure once')
      .example('$0 dag run.ggtrace --collapse -o dag.svg', 'for a browser')
      .example('$0 dag run.ggtrace --layers 3 --top 5', 'the nodes of layer 3 that take the most time')
      .example('$0 dag run.ggtrace --call 0 --color-by gbps -o prefill.dot', 'for Graphviz')
      .example('$0 dag --diff llama.ggtrace qwen2.ggtrace', 'how the graphs of two models, or builds, differ'),
  handler,
}

/** For yargs' `coerce`: `3..5`, `7` or `2..`, both included. */
function range(option: string): (value: string) => Range {
  return (value) => {
    const text = once(option)(value)
    const match = /^(\d+)(?:(\.\.)(\d+)?)?$/.exec(text.trim())
    const first = Number(match?.[1])
    const last = match?.[2] === undefined ? first : match[3] === undefined ? Infinity : Number(match[3])
    if (match && first <= last) return [first, last]
    throw new UsageError(`${option} "${text}": expected 3..5 (both included), 7 (one) or 2.. (to the end)`)
  }
}

type Kind = 'table' | 'svg' | 'dot' | 'json'

async function handler(args: Given): Promise<void> {
  const kind = kindOf(args)
  refuseCombinations(args, kind)
  const { inputs, diff, output } = args
  if (output !== undefined) await checkOutput(output, inputs, 'graph', args.force)
  if (diff) return showDiff(await dagFrom([inputs[0]!], args), await dagFrom([inputs[1]!], args), kind, args)
  const { name, dag } = await dagFrom(inputs, args)
  const { colorBy, colorCsv, scale, top, weights, views, collapse, edgeShapes } = args
  const values = colorCsv === undefined ? undefined : await readValues(colorCsv)
  if (values) refuseUnknown(values, dag)
  if (kind === 'json') return write(JSON.stringify(dag, null, 2), args, dagLine(dag))
  if (kind === 'table')
    return printTable(dagSections(dag, { colorBy: colorBy ?? 'time', values, top, views: views ?? false }))
  const isAll = kind === 'dot'
  const drawing = draw(dag, {
    ...{ name, colorBy, values, scale, collapse, edgeShapes },
    ...{ weights: weights ?? isAll, views: views ?? isAll },
  })
  return write(isAll ? toDot(drawing) : await svgOf(drawing, collapse), args, dagLine(dag))
}

async function showDiff(a: NamedDag, b: NamedDag, kind: Kind, args: Given): Promise<void> {
  const diff = diffDags(a, b)
  if (kind === 'json') return write(JSON.stringify(diff, null, 2), args)
  if (kind === 'table') return printTable(diffSections(diff, args.top ?? TOP))
  const drawing = drawDiff(diff, a, b)
  return write(kind === 'dot' ? toDot(drawing) : await svgOf(drawing, true), args)
}

const printTable = (sections: Parameters<typeof toText>[0]) =>
  print(toText(sections, io().stdout.columns ?? WIDTH, '--json contains'))

/** The graph of a log, or the one in a stored Analysis, in the range of the options. */
async function dagFrom(inputs: readonly string[], args: Given): Promise<NamedDag> {
  const { call, layers, nodes, from, opTable, osrt } = args
  const { series, undetermined } = await analysisOf({ inputs, from, opTable, osrt }, { series: ['graph'], call })
  const name = inputs.map(inputName).join(' ')
  const graph = series?.graph
  if (!graph) {
    const reason = undetermined.find(({ what }) => what === 'series.graph')
    const ofCall =
      call === undefined ? reason?.hint : `ggml2perfetto stats ${inputs.map(quoted).join(' ')} --calls lists calls`
    const hint = reason ? ofCall : 'ggml2perfetto stats <logs> --series graph --json writes an Analysis with one'
    throw new UsageError(`${name}: ${reason?.why ?? 'contains no series of graph'}${hint ? `\nhint: ${hint}` : ''}`)
  }
  if (call !== undefined && graph.call !== call)
    throw new UsageError(`${name}: contains the graph of call ${graph.call} only\nhint: --call is for logs`)
  const unknown = undetermined.find(({ what }) => what === 'series.graph.nodes.reads_from')
  if (unknown) await note(`note: ${name}: no edges between nodes: ${unknown.why}`)
  if (graph.left_out > 0)
    await note(
      `warning: ${name}: ${plural(graph.left_out, 'node')} of the call left out; the first ${graph.nodes_max} are shown`,
    )
  const dag = dagOf(graph, { layers, nodes })
  if (dag.nodes.length === 0) throw new UsageError(noNodes(name, graph.nodes.length, dagOf(graph)))
  return { name, dag }
}

function noNodes(name: string, count: number, { nodes }: Dag): string {
  const layers = nodes.reduce((most, { in_layer }) => Math.max(most, in_layer), -1)
  const range = layers < 0 ? 'no layers' : `layers 0..${layers}`
  return `${name}: no nodes in this range\nhint: its graph has ${range} and nodes 0..${count - 1}`
}

async function svgOf(drawing: Drawing, isCollapsed: boolean): Promise<string> {
  const { nodes, edges } = sizeOf(drawing)
  const hint = isCollapsed ? '--layers draws some of them' : '--collapse draws layers of the same structure once'
  if (nodes + edges > TOO_LARGE)
    throw new UsageError(
      `${plural(nodes, 'node')} and ${plural(edges, 'edge')}: too many for Graphviz, which would take minutes\nhint: ${hint}; --layers and --nodes choose; DOT and JSON contain all`,
    )
  if (nodes + edges > LARGE)
    await note(
      `Graphviz lays out ${plural(nodes, 'node')} and ${plural(edges, 'edge')}, which takes some seconds; ${hint}`,
    )
  return drawSvg(drawing)
}

/** Writes a text to the file of `-o`, or prints it. `line`: the answer, where the text is not printed. */
async function write(text: string, { output, json }: Given, line?: string): Promise<void> {
  if (json) return printJson(text)
  if (output === '-') return print(text.trimEnd())
  const { bytes } = await writeTrace(output!, pieces(text), () => undefined)
  await print([...(line === undefined ? [] : [line]), `wrote ${quoted(output!)} (${size(bytes)})`])
}

async function* pieces(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text.endsWith('\n') ? text : `${text}\n`)
}

function kindOf({ output, json }: Given): Kind {
  if (output === undefined) return json ? 'json' : 'table'
  if (json)
    throw new UsageError('--json prints JSON, and -o writes a file: expected one of them; -o x.json is JSON, too')
  const ending = /\.(svg|dot|gv|json)(\.gz)?$/i.exec(output)?.[1]?.toLowerCase()
  if (ending === undefined && output !== '-')
    throw new UsageError(`-o ${output}: expected a name that ends in .svg, .dot, .gv or .json, or - for DOT`)
  return ending === 'svg' || ending === 'json' ? ending : 'dot'
}

/** Options, and the kinds of output that they have an effect on. */
const EFFECTS: readonly (readonly [keyof Given & string, readonly Kind[]])[] = [
  ['colorBy', ['svg', 'dot', 'table']],
  ['colorCsv', ['svg', 'dot', 'table']],
  ['scale', ['svg', 'dot']],
  ['collapse', ['svg']],
  ['weights', ['svg', 'dot']],
  ['edgeShapes', ['svg', 'dot']],
  ['top', ['table']],
]
const KINDS: Readonly<Record<Kind, string>> = { svg: 'SVG', dot: 'DOT', json: 'JSON', table: 'the table' }

/** Throws UsageError for options of which one would have no effect. */
function refuseCombinations(args: Given, kind: Kind): void {
  const { inputs, diff, colorBy, colorCsv, views } = args
  const isGiven = (key: string) => args[key as keyof Given] !== undefined && args[key as keyof Given] !== false
  const option = (key: string) => `--${key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)}`
  if (diff && inputs.length !== 2)
    throw new UsageError(`--diff compares two graphs; found ${plural(inputs.length, 'input')}`)
  const unused = diff ? EFFECTS.find(([key]) => key !== 'top' && isGiven(key)) : undefined
  if (unused) throw new UsageError(`${option(unused[0])} is for one graph, not for --diff`)
  if (colorBy && colorCsv !== undefined) throw new UsageError('--color-by and --color-csv: expected one of them')
  for (const [key, kinds] of EFFECTS)
    if (isGiven(key) && !kinds.includes(kind)) {
      const all = key === 'collapse' && kind !== 'table' ? `; ${KINDS[kind]} always has every node` : ''
      throw new UsageError(
        `${option(key)} is for ${kinds.map((kind) => KINDS[kind]).join(', ')}, not for ${KINDS[kind]}${all}`,
      )
    }
  if (views === false && kind === 'dot')
    throw new UsageError('--no-views is for SVG and the table; DOT always has every node')
}
