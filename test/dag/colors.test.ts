import { describe, expect, test } from '@jest/globals'
import { colorsOf, fillAt } from '../../lib/dag/colors.ts'

describe('colours', () => {
  const luminance = (color: string) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const share = Number.parseInt(color.slice(at, at + 2), 16) / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
  }

  test('get darker with the value; text on them has a contrast of at least 4.5', () => {
    let before = Infinity
    for (let place = 0; place <= 1; place += 1 / 256) {
      const { fill, text } = fillAt(place)
      const [a, b] = [luminance(fill), luminance(text)]
      expect((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)).toBeGreaterThanOrEqual(4.5)
      expect(a).toBeLessThan(before + 0.001) // channels are whole numbers
      before = a
    }
  })

  test('linear and logarithmic scales', () => {
    const [linear, log] = [colorsOf([1, 10, 100], 'linear')!, colorsOf([0, 1, 10, 100], 'log')!]
    expect([linear.at(0), linear.at(0.5), linear.at(1)]).toEqual([1, 50.5, 100])
    expect([log.at(0), log.at(0.5), log.at(1)].map((value) => Math.round(value))).toEqual([1, 10, 100])
    expect(log.of(10)).toEqual(fillAt(0.5))
    expect(log.of(0)).toEqual(fillAt(0))
    expect(linear.of(50.5)).toEqual(fillAt(0.5))
    expect(colorsOf([7], 'log')!.of(7)).toEqual(fillAt(1))
    expect(colorsOf([], 'linear')).toBeUndefined()
  })
})
