import * as Plot from '@observablehq/plot'
import type { Comparison, Effect, EffectGroup, Verdict } from '../analyze/compare/figures.ts'
import { duration, percent, plural, size, threeDigits } from '../model/units.ts'
import { chart, fitting, stackedBars } from './chart.ts'
import { colour } from './colours.ts'
import { baseName, known } from './context.ts'
import { columns, figureHtml, type Section, tableHtml, tableOf } from './figure.ts'
import { type Html, html } from './html.ts'
import type { Page } from './page.ts'

const TITLES: Readonly<Record<EffectGroup, string>> = {
  speed: 'Speed',
  part: 'Time of calls, per call',
  role: 'Operators, per call',
  layer: 'Layers, per call',
  type: 'Types of weights, per call',
  worker: 'Workers, per call',
  memory: 'Memory',
}
/** Effects that are drawn of each group; they are in order of what matters. */
const EFFECTS_MAX = 20
const SOURCE = 'ggml2perfetto compare <a> --with <b> --json'

/** The page of a comparison: how the sides differ, what changed, and the parts of calls on both sides. */
export function comparisonPage(comparison: Comparison, title: string | undefined): Page {
  const { effects } = comparison
  const [before, after] = [namedSide(comparison.before), namedSide(comparison.after)]
  const groups = (Object.keys(TITLES) as EffectGroup[]).flatMap((group) => {
    const inGroup = effects.filter((effect) => effect.group === group)
    return inGroup.length > 0 ? [effectsFigure(group, inGroup)] : []
  })
  const changed = effects.filter(({ verdict }) => /slower|faster/.test(verdict))
  const sides = partsFigures(comparison)
  return {
    title: title ?? withoutFolders(comparison),
    lead: html`<p class="lead">a: ${before.name} (${plural(before.runs, 'run')}) · b: ${after.name} (${plural(after.runs, 'run')})</p>`,
    sections: [
      changesSection(changed, comparison),
      sidesSection({ ...comparison, before, after }),
      { id: 'effects', title: 'What changed, and how certain it is', content: [...groups, readingHtml(comparison)] },
      ...(sides.length > 0 ? [{ id: 'parts', title: 'Parts of calls on both sides', content: sides }] : []),
    ],
  }
}

/** A text in which logs are without their folders: reports are for other people. */
function withBaseNames(text: string, ...sides: readonly Comparison['before'][]): string {
  const paths = sides.flatMap(({ inputs }) => inputs.flat()).sort((a, b) => b.length - a.length)
  return paths.reduce((name, path) => name.replaceAll(path, () => baseName(path)), text)
}

const namedSide = (side: Comparison['before']) => ({ ...side, name: withBaseNames(side.name, side) })
const withoutFolders = ({ verdict, before, after }: Comparison) => withBaseNames(verdict, before, after)

const valueText = (value: number | null, unit: Effect['unit']) => known(value, unit === 'ns' ? duration : size)
const signed = (share: number) => `${share > 0 ? '+' : ''}${percent(share)}`
const nameOf = ({ phase, name }: Effect) => (phase === null ? name : `${name} (${phase})`)
const intervalOf = ({ low_share, high_share }: Effect) =>
  low_share === null || high_share === null ? '' : `${signed(low_share)} … ${signed(high_share)}`

/** Changes, regressions first; and findings that appeared or vanished. */
function changesSection(changed: readonly Effect[], { findings, before, after, is_comparable }: Comparison): Section {
  const items = changed
    .slice(0, EFFECTS_MAX)
    .map(
      (effect) =>
        html`<li><strong>${effect.name} ${effect.verdict} ${known(effect.change_share, signed)}</strong> ${effect.phase ?? ''}: ${valueText(effect.before, effect.unit)} → ${valueText(effect.after, effect.unit)} <span class="note">${intervalOf(effect)}</span></li>`,
    )
  const lines = findings.map(
    ({ change, sentence, runs_before, runs_after }) =>
      html`<li>${change.replace('maybe appeared', 'only in b, perhaps by chance').replace('maybe vanished', 'only in a, perhaps by chance')} (${runs_before} of ${before.runs}, ${runs_after} of ${plural(after.runs, 'run')}): ${sentence}</li>`,
  )
  const content = [
    is_comparable
      ? undefined
      : html`<p><strong>The sides are not comparable: differences below explain other times by themselves.</strong></p>`,
    items.length > 0 ? html`<ol class="findings">${items}</ol>` : html`<p>No change is certain.</p>`,
    lines.length > 0 ? html`<h3>Findings that changed</h3><ul>${lines}</ul>` : undefined,
  ]
  return { id: 'findings', title: 'Changes', content: content.filter((html) => html !== undefined) }
}

function sidesSection({ before, after, differences }: Comparison): Section {
  const shown = (what: string, value: string, name: string) => (what === 'host' ? `another one (${name})` : value)
  const rows = differences.map(({ what, is_obstacle, ...rest }) => [
    what,
    is_obstacle ? 'yes' : '',
    shown(what, rest.before, 'a'),
    shown(what, rest.after, 'b'),
  ])
  const table = { columns: columns('<what', '<explains other times', '<a', '<b'), rows }
  return {
    id: 'sides',
    title: 'Both sides',
    content: [
      html`<dl><dt>a</dt><dd>${before.name}: ${plural(before.runs, 'run')}</dd><dt>b</dt><dd>${after.name}: ${plural(after.runs, 'run')}</dd></dl>`,
      rows.length > 0
        ? tableHtml(table, 'In what the sides differ, apart from their times')
        : html`<p>No fact of the runs differs.</p>`,
    ],
  }
}

const COLOUR: Readonly<Partial<Record<Verdict, number>>> = {
  slower: 9,
  'maybe slower': 9,
  more: 9,
  faster: 3,
  'maybe faster': 3,
  less: 3,
}

function effectsFigure(group: EffectGroup, effects: readonly Effect[]): Html {
  const shown = effects.filter(({ change_share }) => change_share !== null).slice(0, EFFECTS_MAX)
  const points = shown.map((effect) => ({
    ...effect,
    label: nameOf(effect),
    change: 100 * effect.change_share!,
    low: 100 * (effect.low_share ?? effect.change_share!),
    high: 100 * (effect.high_share ?? effect.change_share!),
    colour: colour(COLOUR[effect.verdict] ?? 7),
    text: `${nameOf(effect)}: ${effect.verdict}\n${valueText(effect.before, effect.unit)} → ${valueText(effect.after, effect.unit)}, ${signed(effect.change_share!)}\n${intervalOf(effect)}`,
  }))
  const reach = Math.min(200, Math.max(5, ...points.flatMap(({ low, high, change }) => [-low, high, Math.abs(change)])))
  const clamp = (value: number) => Math.max(-Math.min(reach, 100), Math.min(reach, value))
  const isBeyond = points.some(
    ({ low, high, change }) => Math.min(low, change) < -Math.min(reach, 100) || Math.max(high, change) > reach,
  )
  const drawing = chart(`${TITLES[group]}: change from a to b in percent`, (_, isNarrow) => ({
    height: 56 + 22 * points.length,
    marginLeft: isNarrow ? 130 : 270,
    x: { label: 'change from a to b, %', grid: true, domain: [-Math.min(reach, 100), reach] },
    y: {
      domain: points.map(({ label }) => label),
      label: null,
      tickSize: 0,
      tickFormat: (name: string) => fitting(name, isNarrow ? 130 : 270),
    },
    marks: [
      Plot.ruleX([0]),
      Plot.ruleY(points, {
        x1: ({ low }) => clamp(low),
        x2: ({ high }) => clamp(high),
        y: 'label',
        stroke: 'colour',
        strokeWidth: 3,
        strokeOpacity: 0.6,
      }),
      Plot.dot(points, { x: ({ change }) => clamp(change), y: 'label', r: 5, fill: 'colour', title: 'text' }),
    ],
    color: { type: 'identity' },
  }))
  return figureHtml({
    title: TITLES[group],
    about: `To the right b is slower, or larger. A point is the change of the geometric mean over runs, its line the interval.${isBeyond ? ' What is beyond the axis is at its edge.' : ''}${effects.length > shown.length ? ' Further ones are in the table.' : ''}`,
    chart: points.length > 0 ? drawing : html`<p>No figure is on both sides.</p>`,
    table: tableOf(effects, {
      '<what': ({ name }) => name,
      '<phase': ({ phase }) => phase ?? '',
      a: ({ before, unit }) => valueText(before, unit),
      b: ({ after, unit }) => valueText(after, unit),
      change: ({ change_share }) => known(change_share, signed),
      interval: intervalOf,
      'runs a': ({ runs_before }) => runs_before,
      'runs b': ({ runs_after }) => runs_after,
      '<verdict': ({ verdict }) => verdict,
    }),
    source: `${SOURCE} (effects)`,
  })
}

/** Parts of the time of a call of each phase, of both sides one above the other. */
function partsFigures({ effects }: Comparison): Html[] {
  const parts = effects.filter(({ group, phase }) => group === 'part' && phase !== null)
  return [...new Set(parts.map(({ phase }) => phase!))].map((phase) => {
    const effects = parts.filter((part) => part.phase === phase).sort((a, b) => (b.before ?? 0) - (a.before ?? 0))
    const names = effects.map(({ name }) => name)
    const sides = effects.flatMap(({ name, before, after }) =>
      Object.entries({ a: before, b: after }).map(([row, ns]) => {
        const value = (ns ?? 0) / 1e6
        return { row, name, value, text: `${row}: ${name}\n${duration(value * 1e6)}` }
      }),
    )
    return figureHtml({
      title: `Time of a call of ${phase} on both sides`,
      about: 'Geometric means over the runs of a side, of parts that are at least 1 % of a call.',
      ...stackedBars(`Time of a call of ${phase} by part on both sides, in milliseconds`, sides, names, {
        ...{ rows: ['a', 'b'], height: 130, marginLeft: 30 },
        x: { label: 'ms per call', grid: true, tickFormat: threeDigits },
      }),
      table: tableOf(effects, {
        '<part': ({ name }) => name,
        a: ({ before, unit }) => valueText(before, unit),
        b: ({ after, unit }) => valueText(after, unit),
        change: ({ change_share }) => known(change_share, signed),
      }),
      source: `${SOURCE} (effects, group part)`,
    })
  })
}

function readingHtml({ compared_speeds, compared_others, level_share, named_level_share }: Comparison): Html {
  return html`<p class="note">The unit is the run. Together, all intervals of speed (${compared_speeds}) and all others (${compared_others}) contain their true values in ${percent(level_share)} of comparisons; “slower” and “faster” are named where ${percent(named_level_share)} do, “maybe” where ${percent(level_share)} do.</p>`
}
