import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { compareRuns, readAnalysis } from '../../lib/analysis.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { inLong } from '../long.ts'
import { changed, markTexts, refusal, type Step, valueAt } from './marked.ts'

/** Stored Analyses that were made to do harm: no text of one becomes an element of a page, and no value of a wrong type is read. */

const path = (of: string) => fileURLToPath(new URL(`../../${of}`, import.meta.url))
const SERIES = ['calls', 'requests', 'memory', 'offsets', 'graph'] as const
const LOGS: readonly (readonly [what: string, logs: readonly string[]])[] = [
  ['a run', ['examples/moe.ggtrace.gz']],
  ['work of a GPU', ['test/fixtures/nsys/two-processes.sqlite.gz']],
  ['a run with a scheduler', ['test/fixtures/session/run.ggtrace.gz', 'test/fixtures/session/run.sched.dat.gz']],
]

/** Each kind of value in a document once: the path of the first of those that differ in their indexes only. */
function placesIn(document: unknown): Step[][] {
  const found = new Map<string, Step[]>()
  const look = (value: unknown, steps: Step[]): void => {
    const key = steps.map((step) => (typeof step === 'number' ? '*' : step)).join('.')
    const isKnown = found.has(`${key} ${kindOf(value)}`)
    if (steps.length > 0 && !isKnown) found.set(`${key} ${kindOf(value)}`, steps)
    if (Array.isArray(value)) for (const [i, of] of value.slice(0, 40).entries()) look(of, [...steps, i])
    else if (typeof value === 'object' && value !== null)
      for (const [key, of] of Object.entries(value)) look(of, [...steps, key])
  }
  look(document, [])
  return [...found.values()]
}

const kindOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
const MARKUP = `'"><img src=x onerror="alert(1)"><meta http-equiv="refresh" content="0;url=https://a"></title></script><!--`
const WRONG: readonly unknown[] = [7, true, null, [], {}, MARKUP, { html: MARKUP }, [MARKUP]]
/** Objects whose values are texts or numbers. */
const EITHER = /^findings\.\d+\.evidence\.|^benchmarks\.\d+\.parameters\./

/** Names of the elements of a page. */
const elementsIn = (page: string) =>
  new Set([...page.replace(/<(style|script)>[\s\S]*?<\/\1>/g, '').matchAll(/<!?[/]?([\w-]+)/g)].map(([, name]) => name))

function expectSafe(page: string, like: string): void {
  for (const part of ['<img', '"refresh"', '"><', `'">`, 'onerror="', '<!--']) {
    const times = (of: string) => of.split(part).length
    if (part === '"><') expect(page).not.toContain('"><img')
    else expect([part, times(page)]).toEqual([part, times(like)])
  }
  expect([...elementsIn(page)].filter((name) => !elementsIn(like).has(name))).toEqual([])
}

/** As errors name it: an index, or a name that may contain anything, is in brackets. */
const nameOf = (steps: readonly (string | number)[]) =>
  steps
    .map((step, i) => {
      if (/^\d+$/.test(`${step}`)) return `[${step}]`
      return /^[\w-]{1,40}$/.test(`${step}`) ? `${i > 0 ? '.' : ''}${step}` : `[${JSON.stringify(step)}]`
    })
    .join('')

inLong(test).each(LOGS)('%s: a value of a wrong type is refused by its name', async (_, logs) => {
  const document = JSON.parse(
    JSON.stringify(
      await analyze(
        logs.map((log) => inputOf(path(log))),
        { series: SERIES },
      ),
    ),
  )
  const places = placesIn(document)
  expect(places.length).toBeGreaterThan(150)
  const wrong: string[] = []
  const small = withFirst(document, places)
  expect(await refusal(small)).toBeUndefined()
  for (const steps of placesIn(small)) {
    const only = withFirst(small, [steps])
    expect(await refusal(only)).toBeUndefined()
    const kind = kindOf(valueAt(only, steps))
    for (const value of WRONG) {
      if (kindOf(value) === kind || kind === 'null' || value === null) continue
      const place = steps.join('.')
      if (EITHER.test(place) && /number|string/.test(kindOf(value))) continue
      const found = await changed(only, steps, value, () => refusal(only))
      const name = nameOf(steps)
      if (
        !found?.includes(
          `UsageError: the Analysis: not a readable Analysis: expected ${place === 'schema' ? '"schema' : `${name}: `}`,
        )
      )
        wrong.push(`${place} = ${JSON.stringify(value)}: ${found}`)
    }
  }
  expect(wrong).toEqual([])
})

/** A document whose lists have only the elements that `places` name, and those before them. */
function withFirst(document: unknown, places: readonly Step[][]): unknown {
  const lengths = new Map<string, number>()
  for (const steps of places)
    for (const [i, step] of steps.entries()) {
      const list = steps.slice(0, i).join('.')
      if (typeof step === 'number') lengths.set(list, Math.max(lengths.get(list) ?? 0, step + 1))
    }
  const cut = (value: unknown, place: string): unknown => {
    if (Array.isArray(value)) {
      const isTuple = value.length === 3 && value.every((of) => typeof of === 'number')
      const kept = isTuple ? value : value.slice(0, lengths.get(place) ?? 0)
      return kept.map((of, i) => cut(of, place === '' ? String(i) : `${place}.${i}`))
    }
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, of]) => [key, cut(of, place === '' ? key : `${place}.${key}`)]),
    )
  }
  return cut(document, '')
}

inLong(test).each(LOGS)('%s: markup in all of its texts is text in the pages', async (_, logs) => {
  const analysis = await analyze(
    logs.map((log) => inputOf(path(log))),
    { series: SERIES },
  )
  const document = JSON.parse(JSON.stringify(analysis))
  const texts = await markTexts(document, MARKUP)
  expect(texts).toBeGreaterThan(20)
  const injected = await readAnalysis(JSON.stringify(document))
  expectSafe(reportHtml(injected), reportHtml(analysis))
  expectSafe(reportHtml(injected, { title: MARKUP }), reportHtml(analysis))
  const sideOf = (of: Analysis) => ({ name: of.inputs[0]!.name, runs: [of] })
  const both = (of: Analysis) => reportHtml(compareRuns(sideOf(of), sideOf(of)))
  expectSafe(both(injected), both(analysis))
})

test('an object in place of a text is no markup, also where nothing checked it', async () => {
  const analysis = await analyze(inputOf(path('examples/moe.ggtrace.gz')))
  const run = { ...analysis.run, model: { html: MARKUP } as unknown as string }
  expectSafe(reportHtml({ ...analysis, run }), reportHtml(analysis))
})

test('a stored one of an earlier version with such an object is refused', async () => {
  const source = readFileSync(path('test/fixtures/analysis/inject-analysis.json'), 'utf8')
  expect(await refusal(JSON.parse(source))).toBe(
    'UsageError: the Analysis: not a readable Analysis: expected run.model: string or null, found object',
  )
  const repaired = JSON.parse(source)
  repaired.run.model = 'moe'
  repaired.findings[0].sentence = 'none'
  const { run, inputs, calls } = await readAnalysis(JSON.stringify(repaired))
  expect([run.model, inputs[0]!.times, calls.runs, calls.slope!.is_clear]).toEqual(['moe', 'recorded', [], false])
  expect(reportHtml(await readAnalysis(JSON.stringify(repaired)))).toContain('<title>moe</title>')
})
