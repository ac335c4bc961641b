import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { compareRuns, groupOperators, whatIf } from '../../lib/analysis.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { duration, threeDigits } from '../../lib/model/units.ts'
import { inputOf } from '../../lib/node.ts'
import { SCRIPT, SCRIPT_HASH } from '../../lib/report/page.ts'
import { layerToShow, reportHtml } from '../../lib/report.ts'
import { drawingsOf, figuresOf, type Mark, marksOf, tableOf, unescaped } from './svg.ts'

/** Reports: what they contain, read back from the page, against the Analysis. */

const MOE = fileURLToPath(new URL('../recorded/outside-graphs.ggtrace.gz', import.meta.url))
const PEAKS = {
  ...{ device: null, flop_type: 'any', int8_op_per_s: null, origin: 'given' as const, source: 'test' },
  ...{ flop_per_s: 200e9, bytes_per_s: 20e9 },
} as const

let analysis: Analysis
let page: string
beforeAll(async () => {
  analysis = await analyze(inputOf(MOE), { series: ['calls', 'memory', 'offsets'], peaks: PEAKS })
  page = reportHtml(analysis)
})

const figure = (title: string) => figuresOf(page).get(title)!
const wideMarks = (title: string) => marksOf(drawingsOf(figure(title))[0]!)
const sum = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)
/** The largest relative difference of marks from values that they are proportional to. */
function disproportion(marks: readonly Mark[], drawn: (mark: Mark) => number, value: (mark: Mark) => number): number {
  const scale = sum(marks.map(drawn)) / sum(marks.map(value))
  return Math.max(...marks.map((mark) => Math.abs(drawn(mark) - scale * value(mark)))) / Math.max(...marks.map(drawn))
}

describe('a report', () => {
  test('has findings first, then all parts that the log has data for, and what is missing', () => {
    const ids = [...page.matchAll(/<h2 id="([\w-]+)"/g)].map(([, id]) => id)
    const parts = ['call-time', 'phases', 'blocks', 'roofline', 'matmul', 'workers', 'memory', 'experts']
    expect(ids).toEqual(['findings', ...parts, 'run', 'issues', 'unknown'])
    for (const { sentence, advice } of analysis.findings) {
      expect(unescaped(page)).toContain(`<strong>${sentence}</strong>`)
      expect(unescaped(page)).toContain(advice)
    }
    expect(page).toContain(
      'Not in this report: first token, machine and threads, samples of memory, graph of a layer, GPU',
    )
    for (const { what, why } of analysis.undetermined) {
      expect(unescaped(page)).toContain(why)
      expect(page).toContain(what)
    }
  })

  test('begins with the verdict, the gauge of the ceiling where it is known, and the first figures', () => {
    const headOf = (subject: Analysis) => unescaped(/<header>.*?<\/header>/s.exec(reportHtml(subject))![0])
    const { verdict, calls } = analysis
    const plain = headOf(analysis)
    expect(plain.indexOf('class="heroes"')).toBeGreaterThan(plain.indexOf(`<p class="verdict">${verdict.sentence}</p>`))
    expect(plain).toContain(`<dt>decode</dt><dd>${threeDigits(calls.decode_tokens_per_s!)} tok/s</dd>`)
    expect(plain).toContain(`<dt>per token (TPOT)</dt><dd>${duration(calls.tpot_ns!)}</dd>`)
    expect(plain).not.toContain('gauge')
    const reached = { ceiling: 26.4, ceiling_share: 0.31, ceiling_running_share: 0.43, ceiling_by: 'memory' as const }
    const known = headOf({ ...analysis, verdict: { ...verdict, ...reached } })
    expect(known).toMatch(/aria-label="31 % of 26\.4 tok\/s, what the memory of .* allows; 43 % while it had its CPUs"/)
    expect([...known.matchAll(/style="width:([\d.]+)%"/g)].map(([, width]) => Number(width))).toEqual([43, 31])
  })

  test('labels of drawings have 12 pixels or more, and treemaps the share of each area', () => {
    const sizes = [...page.matchAll(/font-size[:=]"?\s*([\d.]+)px/g)].map(([, size]) => Number(size))
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(12)
    const drawing = drawingsOf(figure('Operators of decode by wall time'))[0]!
    const labels = [...drawing.matchAll(/<text[^>]*>([^<]+)<\/text>/g)].map(([, text]) => unescaped(text!))
    expect(labels.length).toBeGreaterThan(10)
    expect(labels.filter((label) => !/ %$|…$/.test(label))).toEqual([])
  })

  test('each figure has marks with numbers in both widths, its data as a table, and its source', () => {
    const figures = [...figuresOf(page)]
    expect(figures.length).toBeGreaterThan(14)
    for (const [title, text] of figures) {
      const drawings = drawingsOf(text)
      expect([title, drawings.length]).toEqual([title, 2])
      for (const svg of drawings) expect(marksOf(svg).length).toBeGreaterThan(0)
      expect(tableOf(text).length).toBeGreaterThan(1)
      expect(unescaped(text)).toMatch(/Source: <code>ggml2perfetto \w+ outside-graphs\.ggtrace\.gz --/)
    }
  })

  test('refers to nothing outside of it, and its policy permits only its script', () => {
    expect(page).not.toMatch(/https?:|\bsrc=|@import|url\(|<link|<iframe|<img/)
    expect(createHash('sha256').update(SCRIPT).digest('base64')).toBe(SCRIPT_HASH)
    expect(page.match(/<script[^>]*>/g)).toEqual(['<script>'])
    expect(page).toContain(`content="default-src &#39;none&#39;; script-src &#39;sha256-${SCRIPT_HASH}&#39;;`)
  })

  test('is the same each time, and does not contain folders of logs', () => {
    expect(reportHtml(analysis)).toBe(page)
    expect(page).not.toContain(MOE)
  })

  test('of an Analysis without series and of a model alone', async () => {
    const { series: _, ...stored } = analysis
    expect(figuresOf(reportHtml(JSON.parse(JSON.stringify(stored)))).size).toBeGreaterThan(8)
    const empty: Analysis = {
      ...analysis,
      call_time: [],
      operators: { ...analysis.operators, rows: [] },
      workers: [],
      model: null,
      rooflines: [],
      memory: null,
      experts: null,
      series: undefined,
      findings: [],
      inputs: [],
    }
    expect(reportHtml({ ...empty, calls: { ...analysis.calls, count: 0 } })).toContain('No findings')
  })
})

describe('predictions', () => {
  const BEFORE = fileURLToPath(new URL('../printed/logs/before.ggtrace.gz', import.meta.url))

  test('have a part of their own: points are the speeds, their lines the intervals', async () => {
    const run = await analyze(inputOf(BEFORE), { series: ['calls', 'steps'] })
    const predictions = [await whatIf(run, { without: ['preempted'] }), await whatIf(run, { context: 64 })]
    const html = reportHtml(run, { predictions })
    expect(reportHtml(run)).not.toContain('id="what-if"')
    expect(html.indexOf('id="what-if"')).toBeGreaterThan(html.indexOf('id="findings"'))
    const text = figuresOf(html).get('Predicted speed of decode')!
    const rows = tableOf(text).slice(1)
    expect(rows.map(([change]) => change)).toEqual(['without preempted', 'context of 64 tokens'])
    const known = predictions.filter(({ decode_tokens_per_s }) => decode_tokens_per_s.expected !== null)
    expect(known.length).toBeGreaterThan(0)
    const points = marksOf(drawingsOf(text)[0]!)
    expect(points.map(({ lines }) => lines[1])).toEqual(
      known.map(
        ({ decode_tokens_per_s: { now, expected } }) => `${threeDigits(now!)} → ${threeDigits(expected!)} tok/s`,
      ),
    )
    for (const { basis } of predictions) for (const line of basis) expect(unescaped(html)).toContain(`<li>${line}</li>`)
  })
})

describe('drawings', () => {
  test('parts of calls: widths are shares, which sum to 1 in each phase', () => {
    const marks = wideMarks('Parts of the time of calls, by phase')
    const share = ({ lines }: Mark) => {
      const [phase, what] = lines[0]!.split(': ')
      return analysis.call_time.find((of) => of.phase === phase)!.parts.find((of) => of.what === what)!.share
    }
    expect(marks.length).toBeGreaterThan(5)
    // Each part is narrower by the space between parts.
    expect(disproportion(marks, ({ numbers }) => numbers['width']! + 1, share)).toBeLessThan(0.01)
  })

  test('calls: heights are times of blocks and waits', () => {
    const marks = wideMarks('Time of decode over calls')
    const value = ({ lines }: Mark) => {
      const [, number, what] = /^call (\d+): (.*)$/.exec(lines[0]!)!
      const row = analysis.series!.calls!.rows.find(({ call }) => call === Number(number))!
      return what === 'at barriers' ? row.wait_ns! : row.operator_time_ns![what as 'MoE']!
    }
    expect(new Set(marks.map(({ lines }) => lines[0]!.split(':')[0])).size).toBe(8)
    expect(disproportion(marks, ({ numbers }) => numbers['height']!, value)).toBeLessThan(0.01)
  })

  test('treemap: areas are wall times, and fill the drawing', () => {
    const marks = wideMarks('Operators of decode by wall time')
    const groups = groupOperators(analysis, ['block', 'role', 'op', 'phase']).filter(({ phase }) => phase === 'decode')
    const all = sum(groups.map(({ wall_ns }) => wall_ns!))
    const area = ({ numbers }: Mark) => (numbers['width']! + 2) * (numbers['height']! + 2)
    expect(Math.abs(sum(marks.map(area)) / (860 * 300) - 1)).toBeLessThan(0.03)
    const named = marks.filter(({ lines }) => !/ more$/.test(lines[0]!))
    expect(named.length).toBeGreaterThan(20)
    for (const mark of named) {
      const group = groups.find(({ block, role, op }) => mark.lines[0] === `${block}: ${`${role} ${op}`.trim()}`)!
      expect(Math.abs(area(mark) / (860 * 300) - group.wall_ns! / all)).toBeLessThan(0.004)
    }
  })

  test('roofline: points at log(FLOP/byte) and log(FLOP/s), the roof at the peaks, the ridge where both meet', () => {
    const text = drawingsOf(figure('Speed of operators by their work per byte'))[0]!
    const points = marksOf(text).map(({ numbers, lines }) => {
      const [, what, phase] = /^(.*) \((\w+)\)$/.exec(lines[0]!)!
      const of = analysis.rooflines.find(
        (line) => line.scope === 'operator' && line.what === what && line.phase === phase,
      )!
      return {
        x: numbers['cx']!,
        y: numbers['cy']!,
        intensity: Math.log(of.intensity!),
        speed: Math.log(of.flop_per_s / 1e9),
      }
    })
    const pixels = (of: 'x' | 'y', by: 'intensity' | 'speed') => {
      const [low, high] = [
        points.reduce((a, b) => (b[by] < a[by] ? b : a)),
        points.reduce((a, b) => (b[by] > a[by] ? b : a)),
      ]
      const slope = (high[of] - low[of]) / (high[by] - low[by])
      for (const point of points)
        expect(Math.abs(low[of] + slope * (point[by] - low[by]) - point[of])).toBeLessThan(0.1)
      return (value: number) => low[of] + slope * (value - low[by])
    }
    const [atX, atY] = [pixels('x', 'intensity'), pixels('y', 'speed')]
    const roof = /<path d="M([\d.,L]+)"/
      .exec(text)![1]!
      .split('L')
      .map((point) => point.split(',').map(Number))
    expect(roof).toHaveLength(3)
    expect(Math.abs(roof[1]![0]! - atX(Math.log(10)))).toBeLessThan(0.5) // 200 GFLOP/s by 20 GB/s
    expect(Math.abs(roof[1]![1]! - atY(Math.log(200)))).toBeLessThan(0.5)
    expect(roof[2]![1]).toBe(roof[1]![1])
  })

  test('experts: opacity is the share of choices', () => {
    const marks = wideMarks('Choices of experts by layer, decode')
    const share = ({ lines }: Mark) => {
      const [, layer, expert] = /^layer (\d+), expert (\d+)$/.exec(lines[0]!)!.map(Number)
      const { by_expert, activations } = analysis.experts!.layers.find((of) => of.layer === layer)!.by_phase.decode!
      return by_expert[expert!]! / activations
    }
    expect(marks.length).toBe(sum(analysis.experts!.layers.map(({ experts }) => experts)))
    expect(disproportion(marks, ({ numbers }) => numbers['fill-opacity']!, share)).toBeLessThan(0.01)
  })

  test('weights by offset and time: the bytes of the table are all that were read', () => {
    const [map] = analysis.series!.offsets!.maps
    const title = [...figuresOf(page).keys()].find((of) => of.startsWith('Weights read by offset'))!
    const marks = wideMarks(title)
    const units: Readonly<Record<string, number>> = { bytes: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
    const bytes = marks.map(({ lines }) => {
      const [, number, unit] = /^([\d. ]+) (\w+) read$/.exec(lines[0]!)!
      return Number(number!.replaceAll(' ', '')) * units[unit!]!
    })
    expect(Math.abs(sum(bytes) / map!.bytes - 1)).toBeLessThan(0.01)
  })
})

describe('texts of a log', () => {
  const HOSTILE =
    '</script></title></style><script>alert(1)</script><img src=x onerror=alert(1)>"\' onload=alert(1) \u202e\u0000 &lt;'
  /** All texts of a document with something hostile before them. */
  const hostile = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string') return key === 'schema' ? value : `${HOSTILE}${value}`
    if (Array.isArray(value)) return value.map((of) => hostile(of))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, hostile(of, name)]))
  }
  const elements = (text: string) => new Set([...text.matchAll(/<(\w+)/g)].map(([, name]) => name))

  test('are escaped, whatever they contain', () => {
    const made = reportHtml(hostile(analysis) as Analysis)
    expect(made).toContain('&lt;script&gt;alert(1)')
    expect(made).not.toMatch(/<script>alert|<img|\u202e/)
    expect(made).not.toContain('\u0000')
    expect([...elements(made)].filter((name) => !elements(page).has(name))).toEqual([])
    expect(made.match(/<script/g)).toHaveLength(1)
    // No attribute is from a text: each tag has only the names of attributes that it has otherwise.
    const attributes = (text: string) =>
      new Set(
        [...text.replace(/="[^"]*"/g, '=').matchAll(/<\w+([^<>]*)>/g)].flatMap(
          ([, all]) => all!.match(/[\w-]+(?==)/g) ?? [],
        ),
      )
    expect([...attributes(made)].filter((name) => !attributes(page).has(name))).toEqual([])
  })

  test('of a comparison, too', () => {
    const runs = [hostile(analysis) as Analysis]
    const made = reportHtml(compareRuns({ name: HOSTILE, runs: [analysis] }, { name: HOSTILE, runs }))
    expect(made).not.toMatch(/<script>alert|<img|\u202e/)
    expect(made).not.toContain('\u0000')
    expect(made.match(/<script/g)).toHaveLength(1)
  })
})

test('the first token: a bar for each part, one after the other, with its findings', async () => {
  const log = fileURLToPath(new URL('../fixtures/session/run.ggtrace.gz', import.meta.url))
  const { first_token, ...others } = await analyze(inputOf(log))
  const made = reportHtml({ first_token, ...others })
  const figure = figuresOf(made).get('Time to the first token, part by part')!
  const known = first_token!.parts.filter(({ time_ns }) => time_ns !== null)
  const bars = marksOf(drawingsOf(figure)[0]!)
  expect(bars.map(({ lines }) => lines[0])).toEqual(known.map(({ what }) => what))
  expect(
    disproportion(
      bars,
      ({ numbers }) => numbers['width']!,
      (bar) => known[bars.indexOf(bar)]!.time_ns!,
    ),
  ).toBeLessThan(0.01)
  for (const [i, { numbers }] of bars.slice(1).entries())
    expect(numbers['x']).toBeCloseTo(bars[i]!.numbers['x']! + bars[i]!.numbers['width']!, 0)
  expect(figure).toContain('Not recorded: warm-up.')
  expect(unescaped(made)).toContain(`<li>prefill: ${others.findings[0]!.sentence}</li>`)
})

test('a report of a comparison has both sides, changes with their intervals, and parts of calls', () => {
  const slower = (factor: number): Analysis => ({
    ...analysis,
    call_time: analysis.call_time.map((of) => ({
      ...of,
      time_ns: of.time_ns * factor,
      parts: of.parts.map((part) => ({ ...part, time_ns: part.time_ns * factor })),
    })),
    calls: { ...analysis.calls, tpot_ns: analysis.calls.tpot_ns! * factor, ttft_ns: analysis.calls.ttft_ns! * factor },
  })
  const runs = (by: number) => [1, 1.001, 0.999, 1.002, 0.998].map((noise) => slower(by * noise))
  const comparison = compareRuns({ name: analysis.inputs[0]!.name, runs: runs(1) }, { name: 'new', runs: runs(1.2) })
  const made = reportHtml(comparison)
  expect([...made.matchAll(/<h2 id="([\w-]+)"/g)].map(([, id]) => id)).toEqual([
    'findings',
    'sides',
    'effects',
    'parts',
  ])
  expect(made).not.toContain('/examples/')
  const [first] = comparison.effects
  expect(first).toMatchObject({ verdict: 'slower' })
  expect(made).toContain(`<strong>${first!.name} slower +20.0 %</strong>`)
  const parts = marksOf(drawingsOf(figuresOf(made).get('Time of a call of decode on both sides')!)[0]!)
  const width = (side: string) =>
    sum(parts.filter(({ lines }) => lines[0]!.startsWith(side)).map(({ numbers }) => numbers['width']! + 1))
  expect(width('b: ') / width('a: ')).toBeCloseTo(1.2, 2)
})

test('GPUs: widths are parts of the time from the first to the last work; kernels by share', async () => {
  const log = fileURLToPath(new URL('../fixtures/chrome-json/communication.json.gz', import.meta.url))
  const of = await analyze(inputOf(log), { series: ['calls'] })
  const figures = figuresOf(reportHtml(of))
  const device = of.gpu!.devices[0]!
  const parts = marksOf(drawingsOf(figures.get('Time of GPUs')!)[0]!).filter(
    ({ numbers }) => numbers['y'] === marksOf(drawingsOf(figures.get('Time of GPUs')!)[0]!)[0]!.numbers['y'],
  )
  const { total_ns, computation_ns, exposed_communication_ns, exposed_copy_ns, idle_ns } = device.time!
  const shares = [computation_ns, exposed_communication_ns, exposed_copy_ns, idle_ns].map((ns) => ns / total_ns)
  const all = sum(parts.map(({ numbers }) => numbers['width']! + 1))
  for (const [i, share] of shares.entries())
    expect(Math.abs((parts[i]!.numbers['width']! + 1) / all - share)).toBeLessThan(0.005)
  const [title, kernels] = [...figures].find(([title]) => title.startsWith('Kernels with most time'))!
  expect(title).toContain('GPU')
  expect(
    tableOf(kernels)
      .slice(1)
      .map(([name]) => name),
  ).toEqual(device.kernels.map(({ name }) => name))
})

test('a graph of a layer that the caller draws is in the page, with its nodes', async () => {
  const of = await analyze(inputOf(MOE), { series: ['graph'] })
  const layer = layerToShow(of.series!.graph!.nodes)!
  expect(layer).toBe(3)
  const svg = '<?xml version="1.0"?>\n<svg aria-labelledby="t"><title id="t">graph</title></svg>'
  const text = figuresOf(reportHtml(of, { drawing: { layer, svg } })).get(
    `Layer 3 in call ${of.series!.graph!.call} (decode)`,
  )!
  expect(text).toContain(`>${svg.split('\n')[1]}</div>`)
  const names = tableOf(text)
    .slice(1)
    .map(([name]) => name)
  const ofLayer = of.series!.graph!.nodes.filter(({ name, kind }) => /-3$/.test(name) && kind !== 'view')
  expect(ofLayer.length).toBeGreaterThan(15)
  for (const { name } of ofLayer) expect(names).toContain(name)
  expect(names.filter((name) => /-[0-24-9]$/.test(name!))).toEqual([])
  expect(text).toContain('ggml2perfetto dag outside-graphs.ggtrace.gz --layers 3 --call')
})
