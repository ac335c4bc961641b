import { dictionary } from '../model/dictionary.ts'

/** Colours of a theme: text, its background, lines. */
interface Theme {
  readonly fg: string
  readonly muted: string
  readonly bg: string
  readonly panel: string
  readonly line: string
  readonly accent: string
}

/** Themes of the page. */
export const THEMES: Readonly<Record<'light' | 'dark', Theme>> = {
  light: { fg: '#1b1f24', muted: '#57606a', bg: '#ffffff', panel: '#f4f6f8', line: '#c9d1d9', accent: '#0b57d0' },
  dark: { fg: '#e6e9ee', muted: '#a5adba', bg: '#14171c', panel: '#1d222a', line: '#3b424d', accent: '#8ab4f8' },
}

/** Colours of data, in both themes: each has a contrast of at least 3 to the background. */
export const COLOURS: readonly (readonly [light: string, dark: string])[] = [
  ['#2f6fb5', '#6ea8e6'],
  ['#b4530a', '#f0954f'],
  ['#a03d84', '#e08cc8'],
  ['#4d7c0f', '#9ccc4f'],
  ['#0f766e', '#4fc7b8'],
  ['#6d4fc4', '#a996f0'],
  ['#8a6d1a', '#d9bd5c'],
  ['#6b7280', '#9aa3b2'],
  ['#868e9c', '#6f7889'],
  ['#c81e3c', '#ff6b81'],
  ['#7f1d1d', '#d05a5a'],
  ['#374151', '#c3c9d4'],
  ['#9a6b4f', '#c79a7d'],
  ['#d0567a', '#f59bb5'],
]

/** Names that have the same colour in every figure. */
const NAMED: Readonly<Record<string, number>> = dictionary({
  attention: 0,
  FFN: 1,
  MoE: 2,
  norm: 3,
  embedding: 4,
  'LM head': 5,
  copy: 6,
  other: 7,
  'barrier wait': 8,
  'at barriers': 8,
  'barrier open': 13,
  preempted: 9,
  blocked: 10,
  'outside graphs': 11,
  rest: 12,
  computing: 0,
  'without a CPU': 9,
  running: 3,
  woken: 1,
  idle: 7,
  unknown: 7,
  decode: 0,
  prefill: 1,
  mixed: 2,
  encode: 4,
  none: 7,
})

/** The colour of a number, as a CSS variable of the page. */
export const colour = (index: number): string => `var(--k${index % COLOURS.length})`

/** The colours of names: those that have one everywhere, and others in their order. */
export function coloursOf(names: readonly string[]): { readonly domain: string[]; readonly range: string[] } {
  const used = new Set(names.flatMap((name) => NAMED[name] ?? []))
  const free = COLOURS.map((_, i) => i).filter((i) => !used.has(i))
  let next = 0
  const range = names.map((name) => colour(NAMED[name] ?? free[next++ % Math.max(free.length, 1)] ?? 0))
  return { domain: [...names], range }
}
