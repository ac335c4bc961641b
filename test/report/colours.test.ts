import { describe, expect, test } from '@jest/globals'
import { COLOURS, coloursOf, THEMES } from '../../lib/report/colours.ts'

/** Contrasts of both themes, as WCAG 2.2 defines them (axe does not compute those of texts in drawings). */

type Rgb = readonly number[]
const rgb = (hex: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16))

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((value) =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

function contrast(a: Rgb, b: Rgb): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y)
  return (light! + 0.05) / (dark! + 0.05)
}

const over = (front: Rgb, back: Rgb, opacity: number): Rgb =>
  front.map((value, i) => opacity * value + (1 - opacity) * back[i]!)

describe.each(['light', 'dark'] as const)('%s', (name) => {
  const theme = THEMES[name]
  const data = COLOURS.map((pair) => rgb(pair[name === 'light' ? 0 : 1]))

  test('texts: at least 4.5 to their backgrounds', () => {
    for (const text of [theme.fg, theme.muted, theme.accent])
      for (const back of [theme.bg, theme.panel])
        expect([text, back, contrast(rgb(text), rgb(back)) >= 4.5]).toEqual([text, back, true])
  })

  test('data: at least 3 to the background; texts on areas of treemaps at least 4.5', () => {
    for (const colour of data) {
      expect([colour, contrast(colour, rgb(theme.bg)) >= 3]).toEqual([colour, true])
      expect([colour, contrast(rgb(theme.fg), over(colour, rgb(theme.bg), 0.3)) >= 4.5]).toEqual([colour, true])
    }
  })
})

test('parts of the time of a call have colours of their own', () => {
  const blocks = ['attention', 'FFN', 'MoE', 'norm', 'embedding', 'LM head', 'other']
  const parts = ['barrier wait', 'barrier open', 'preempted', 'blocked', 'outside graphs', 'rest']
  const { range } = coloursOf([...blocks, ...parts])
  expect(new Set(range).size).toBe(blocks.length + parts.length)
})
