import { type Analysis, hasStart } from '../../lib/cli.ts'
import { duration, percent } from '../units.ts'
import type { Section } from './section.ts'

type Part = NonNullable<Analysis['first_token']>['parts'][number]

/** `2.4 s: load 80 %, context 7 %, …`, without the smallest where they are too wide; undefined where only calls are known, which are shown anyway. */
export function firstTokenText(figures: Analysis['first_token'], width: number): string | undefined {
  if (!hasStart(figures)) return undefined
  let shown = figures.parts.filter(({ time_ns }) => time_ns !== null)
  const textOf = () => {
    const parts = shown.map((part) => `${part.what}${mark(part)} ${percent(part.share!)}`)
    return `${duration(figures.time_ns)}: ${parts.join(', ')}`
  }
  while (shown.length > 1 && textOf().length > width) {
    const least = Math.min(...shown.map(({ time_ns }) => time_ns!))
    shown = shown.filter(({ time_ns }) => time_ns !== least)
  }
  return textOf()
}

const mark = ({ is_inferred }: Part) => (is_inferred ? ' (inferred)' : '')

/** The waterfall of the first token: what precedes it, and what of it is unusual. */
export function firstTokenSection({ first_token, findings }: Analysis): Section | undefined {
  if (!hasStart(first_token)) return undefined
  const sentences = (part: Part) =>
    part.findings.flatMap((rule) => findings.find((finding) => finding.rule === rule)?.sentence ?? [])
  const rows = first_token.parts.flatMap((part) => {
    const { what, time_ns, share, before_ns, stages } = part
    if (time_ns === null) return [[what, 'not recorded', '', '']]
    const own = stages.length < 2 ? [] : stages.map((stage) => [`  ${stage.stage}`, duration(stage.time_ns), '', ''])
    return [
      [`${what}${mark(part)}`, duration(time_ns), percent(share!), before_ns === null ? '' : duration(before_ns)],
      ...own,
    ]
  })
  rows.push(['all', duration(first_token.time_ns), '', ''])
  const titles = ['part', 'time', 'share', 'time before it']
  const columns = titles.map((title, i) => ({ title, isText: i === 0 }))
  const unusual = first_token.parts.flatMap((part) => sentences(part).map((sentence) => `${part.what}: ${sentence}`))
  return { title: 'first token', tables: [{ columns, rows }], ...(unusual.length > 0 && { lines: unusual }) }
}
