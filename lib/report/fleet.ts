import * as Plot from '@observablehq/plot'
import { checkNames } from '../errors.ts'
import type { FleetBuild, FleetFigures, FleetRun } from '../fleet/figures.ts'
import { FLEET_REPORT_HTML_OPTIONS } from '../generated/option-names.ts'
import { dictionary } from '../model/dictionary.ts'
import { plural, threeDigits } from '../model/units.ts'
import { chart, fitting } from './chart.ts'
import { colour } from './colours.ts'
import { known } from './context.ts'
import { figureHtml, type Section, tableHtml, tableOf } from './figure.ts'
import { type Html, html } from './html.ts'
import { pageHtml } from './page.ts'

/** Runs that are drawn in one figure: of more, every n-th and all outliers. */
const POINTS_MAX = 1000
/** Outliers and hosts that are listed. */
const LISTED_MAX = 20
const HOSTS_DRAWN = 40

const ask = (question: string) => `ggml2perfetto query <dataset> --question ${question}`
const percentText = (value: number) => `${value > 0 ? '+' : ''}${value} %`

/**
 * The report of a fleet as one HTML page that needs nothing else: what became slower, builds over time, hosts, quantisations. Each run that is
 * named or drawn has the path of its log and its trace id.
 */
export function fleetReportHtml(figures: FleetFigures, options: { readonly title?: string | undefined } = {}): string {
  checkNames('fleetReportHtml', options, FLEET_REPORT_HTML_OPTIONS)
  const hosts = new Set(figures.hosts.map(({ host }) => host)).size
  const builds = new Set(figures.builds.map(({ build }) => build)).size
  const sections = [changesSection(figures), buildsSection(figures), hostsSection(figures), quantSection(figures)]
  return pageHtml({
    title: options.title ?? figures.name,
    lead: html`<p class="lead">${plural(figures.runs, 'run')} · ${plural(builds, 'build')} · ${plural(hosts, 'host')}</p>`,
    sections: sections.filter((section) => section !== undefined),
  })
}

function changesSection({ regressions, outliers, hosts }: FleetFigures): Section {
  const slow = hosts.filter(({ verdict }) => verdict === 'slow')
  const items = regressions.map(
    (regression) =>
      html`<li><strong>${regression.build}: ${regression.phase} ${percentText(regression.slower_percent)}</strong> after ${regression.build_before} (${regression.setup})${known(regression.most_by, (role) => `; most by ${role}`)}${known(regression.its_share_percent, (share) => ` (${share} % of it)`)}. <span class="note">Runs: ${regression.run_before} before, ${regression.run_after} after (${regression.log_after})</span></li>`,
  )
  const runs = outliers
    .slice(0, LISTED_MAX)
    .map(
      (outlier) =>
        html`<li>${outlier.log} on ${outlier.host}: ${outlier.phase} ${percentText(outlier.slower_percent)} ${known(outlier.sentence, (sentence) => `— ${sentence}`)} <span class="note">${outlier.build}, ${outlier.setup}, run ${outlier.trace_id}</span></li>`,
    )
  const slowHosts = slow.map(
    (host) =>
      html`<li>${host.host}: ${host.phase} ${percentText(host.slower_percent)} in ${plural(host.runs, 'run')} <span class="note">${host.setup}, last run ${host.last_run}</span></li>`,
  )
  const list = (title: string, items: readonly Html[], none: string, all: number) => [
    html`<h3>${title}</h3>`,
    items.length === 0 ? html`<p>${none}</p>` : html`<ol class="findings">${items}</ol>`,
    all > items.length ? html`<p class="note">The first ${items.length} of ${all}.</p>` : undefined,
  ]
  const content = [
    ...list(
      'Builds that are slower',
      items,
      'No build is slower than the one before it, with certainty.',
      items.length,
    ),
    ...list('Runs that are slower than others of their setup, build and host', runs, 'None.', outliers.length),
    ...list('Hosts that are slow', slowHosts, 'None.', slow.length),
  ]
  return { id: 'findings', title: 'What is slower', content: content.filter((part) => part !== undefined) }
}

/** Values by the setup and phase that they are of, in their order. */
function bySetup<T extends { readonly setup: string; readonly phase: string }>(rows: readonly T[]): [string, T[]][] {
  const groups = new Map<string, T[]>()
  for (const value of rows) {
    const key = `${value.setup}: ${value.phase}`
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return [...groups]
}

function buildsSection({ builds, points, outliers }: FleetFigures): Section | undefined {
  const runs = new Map(bySetup(points))
  const named = new Set(outliers.map(({ trace_id }) => trace_id))
  const figures = bySetup(builds).map(([name, builds]) => buildsFigure(name, builds, runs.get(name) ?? [], named))
  return figures.length === 0 ? undefined : { id: 'builds', title: 'Builds over time', content: figures }
}

const VERDICT_COLOUR: Readonly<Record<string, number>> = dictionary({ slower: 9, faster: 3 })

function buildsFigure(
  name: string,
  builds: readonly FleetBuild[],
  all: readonly FleetRun[],
  outliers: Set<string>,
): Html {
  const every = Math.ceil(all.length / POINTS_MAX)
  const runs = all.filter(({ trace_id }, i) => i % every === 0 || outliers.has(trace_id))
  const changes = builds.filter(({ verdict }) => verdict !== '')
  const label = new Map(builds.map(({ number, build }) => [number, build]))
  const drawing = chart(`Time of a token of each run by build, ${name}, in milliseconds`, (_, isNarrow) => ({
    height: 300,
    marginBottom: 80,
    marginLeft: 60,
    x: {
      type: 'point',
      domain: builds.map(({ number }) => number),
      label: null,
      tickRotate: -30,
      tickFormat: (number: number) => fitting(label.get(number) ?? '', isNarrow ? 60 : 90),
    },
    y: { label: 'ms per token', grid: true, tickFormat: threeDigits },
    marks: [
      Plot.ruleX(changes, {
        x: 'number',
        stroke: ({ verdict }: FleetBuild) => colour(VERDICT_COLOUR[verdict] ?? 7),
        strokeDasharray: '4 3',
        title: ({ build, verdict, change_percent }: FleetBuild) =>
          `${build}: ${verdict}${known(change_percent, (value) => ` ${percentText(value)}`)}`,
      }),
      Plot.dot(runs, {
        x: 'number',
        y: 'ms',
        r: 2.5,
        fill: ({ trace_id }: FleetRun) => colour(outliers.has(trace_id) ? 9 : 0),
        fillOpacity: 0.5,
        title: ({ build, host, log, trace_id, ms }: FleetRun) =>
          `${threeDigits(ms)} ms · ${build} · ${host}\n${log}\n${trace_id}`,
      }),
      Plot.lineY(builds, { x: 'number', y: 'ms_per_token', stroke: colour(11), strokeWidth: 2 }),
    ],
  }))
  const shown = every > 1 ? ` Every ${every}th run is drawn, and all outliers.` : ''
  return figureHtml({
    title: name,
    about: `A point is a run, in red an outlier; the line is the median. Dashed: builds that are slower (red) or faster (green) than the one before.${shown}`,
    chart: drawing,
    table: tableOf(builds, {
      '<build': ({ build }) => build,
      runs: ({ runs }) => runs,
      hosts: ({ hosts }) => hosts,
      'median, ms': ({ ms_per_token }) => threeDigits(ms_per_token),
      'slowest tenth from, ms': ({ p90_ms_per_token }) => known(p90_ms_per_token, threeDigits),
      change: ({ change_percent }) => known(change_percent, percentText),
      '<verdict': ({ verdict }) => verdict,
    }),
    source: ask('by-build'),
  })
}

function hostsSection({ hosts }: FleetFigures): Section | undefined {
  const figures = bySetup(hosts).map(([name, all]) => {
    const drawn = all.slice(0, HOSTS_DRAWN)
    return figureHtml({
      title: name,
      about: `How much slower a host is than the median of its setup, after the differences of builds; in red from 10 %.${all.length > drawn.length ? ` The ${drawn.length} slowest of ${all.length}.` : ''}`,
      chart: chart(`Hosts by how much slower they are, ${name}, in percent`, (_, isNarrow) => ({
        height: 56 + 18 * drawn.length,
        marginLeft: isNarrow ? 90 : 160,
        x: { label: 'slower than the median, %', grid: true },
        y: {
          domain: drawn.map(({ host }) => host),
          label: null,
          tickSize: 0,
          tickFormat: (host: string) => fitting(host, isNarrow ? 86 : 156),
        },
        marks: [
          Plot.ruleX([0]),
          Plot.dot(drawn, {
            x: 'slower_percent',
            y: 'host',
            r: 5,
            fill: ({ verdict }: (typeof drawn)[number]) => colour(verdict === 'slow' ? 9 : 0),
            title: ({ host, runs, slower_percent, last_run }: (typeof drawn)[number]) =>
              `${host}: ${percentText(slower_percent)} in ${plural(runs, 'run')}\nlast run ${last_run}`,
          }),
        ],
      })),
      table: tableOf(all, {
        '<host': ({ host }) => host,
        runs: ({ runs }) => runs,
        'median, ms': ({ ms_per_token }) => threeDigits(ms_per_token),
        slower: ({ slower_percent }) => percentText(slower_percent),
        '<verdict': ({ verdict }) => verdict,
        '<last run': ({ last_run }) => last_run,
      }),
      source: ask('by-host'),
    })
  })
  return figures.length === 0 ? undefined : { id: 'hosts', title: 'Hosts', content: figures }
}

/** Setups by model and quantisation, with percentiles over runs. */
function quantSection({ spreads }: FleetFigures): Section | undefined {
  if (spreads.length === 0) return undefined
  const table = tableOf(spreads, {
    '<model': ({ model }) => model,
    '<quantisation': ({ quant }) => quant,
    '<setup': ({ setup }) => setup,
    '<phase': ({ phase }) => phase,
    runs: ({ runs }) => runs,
    'p10, ms': ({ p10 }) => threeDigits(p10),
    'p50, ms': ({ p50 }) => threeDigits(p50),
    'p90, ms': ({ p90 }) => threeDigits(p90),
    'p99, ms': ({ p99 }) => threeDigits(p99),
    'tok/s': ({ p50 }) => threeDigits(1000 / p50),
  })
  const content = [tableHtml(table, 'Time of a token by model, quantisation and setup: percentiles over runs')]
  return { id: 'quantisations', title: 'Models and quantisations', content }
}
