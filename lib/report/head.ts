import type { Analysis } from '../analyze/analysis.ts'
import { percent } from '../analyze/findings/words.ts'
import { duration, plural, threeDigits } from '../model/units.ts'
import { type Html, html } from './html.ts'

/** A figure that is read at first sight. */
interface Hero {
  readonly value: string
  readonly what: string
}

/** What a page begins with: the answer in one line, how far the run is from what its machine allows, and the first figures. */
export function headHtml(analysis: Analysis): Html {
  const heroes = heroesOf(analysis)
  const figures = heroes.map(({ value, what }) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)
  // Without the command that gets more: a page has no logs.
  return html`<p class="verdict">${analysis.verdict.sentence}</p>${gaugeHtml(analysis)}${
    heroes.length > 0 ? html`<dl class="heroes">${figures}</dl>` : undefined
  }<p class="lead">${machineOf(analysis)}</p>`
}

/** A bar up to the ceiling, of which the run reached a part; nothing where the ceiling is not known. */
function gaugeHtml({ verdict, run }: Analysis): Html | undefined {
  const { subject, ceiling, ceiling_share: share, ceiling_by: by, ceiling_running_share: running } = verdict
  if (ceiling === null || share === null) return undefined
  const width = (part: number) => `${(100 * Math.min(1, part)).toFixed(1)}%`
  const whole =
    subject === 'gpu'
      ? 'all of its time'
      : `${threeDigits(ceiling)} tok/s, what the ${by ?? 'machine'}${run.cpu ? ` of ${run.cpu}` : ''} allows`
  const text = `${percent(share)} of ${whole}`
  const lost = running === null ? '' : `; ${percent(running)} while it had its CPUs`
  const ghost = running === null ? undefined : html`<span class="running" style="width:${width(running)}"></span>`
  return html`<div class="gauge" role="img" aria-label="${text}${lost}">${ghost}<span style="width:${width(share)}"></span></div>
<p class="note">${text}${lost}</p>`
}

function heroesOf({ calls, requests, gpu, verdict }: Analysis): Hero[] {
  const { decode_tokens_per_s, prefill_tokens_per_s, ttft_ns, tpot_ns, tpot } = calls
  const latency = Object.values(requests?.by_type ?? {})
    .flatMap((type) => type.latency ?? [])
    .toSorted((a, b) => b.count - a.count)[0]
  const hero = <T>(value: T | null | undefined, what: string, text: (value: T) => string): Hero[] =>
    value === null || value === undefined ? [] : [{ value: text(value), what }]
  const rate = (value: number) => `${threeDigits(value)} tok/s`
  return [
    ...hero(decode_tokens_per_s, 'decode', rate),
    ...hero(prefill_tokens_per_s, 'prompt', rate),
    ...hero(ttft_ns, 'first token after', duration),
    ...hero(tpot_ns, 'per token (TPOT)', duration),
    ...hero(tpot?.p99_ns, 'TPOT, p99', duration),
    ...hero(latency && latency.count > 1 ? latency.p50_ns : null, 'requests, p50', duration),
    ...hero(latency && latency.count > 1 ? latency.p99_ns : null, 'requests, p99', duration),
    ...hero(gpu && verdict.subject === 'gpu' ? verdict.rate : null, 'GPU busy', percent),
  ]
}

const machineOf = ({ run }: Analysis) =>
  [run.workers > 0 ? plural(run.workers, 'worker') : '', run.cpu ?? ''].filter((fact) => fact !== '').join(' · ')
