import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { LAYOUT } from '../../lib/timeline/layout.ts'
import { type Place, specOf } from '../../lib/timeline/place.ts'

/** The table of all tracks, and the one that docs/reference/tracks.md has of them. */
const places = Object.entries(LAYOUT) as unknown as [string, Place<object>][]

/** What docs/reference/tracks.md calls things that names depend on: `worker *n*`; `*buffer*`, where it is called as it is here. */
const CALLED: Readonly<Record<string, unknown>> = {
  worker: '*n*',
  layer: '*n*',
  device: '*n*',
  cpu: '*n*',
  title: '*buffer*',
  name: '*name*',
  per: 'per ms',
  context: 0,
  role: undefined,
  attributes: {},
  input: 0,
  holds: 'slices',
}
const documented = new Proxy({}, { get: (_, what: string) => (what in CALLED ? CALLED[what] : `*${what}*`) })
const OTHERS = new Map<unknown, string>([
  [LAYOUT.own, '*a track of your own*'],
  [LAYOUT.ownAtTop, '*thread*: operators'],
  [LAYOUT.power, '*device*'],
  [LAYOUT.meter, '*figure*'],
  [LAYOUT.tensors, 'at *offset*'], // a number with its unit
])
const nameOf = (place: Place<object>) => OTHERS.get(place) ?? specOf(place, documented).name

/** `Workers / worker *n*`, of a track. */
const pathOf = (place: Place<object>): string => {
  const group = places.find(([key]) => key === place.parent && key !== 'run')
  return group ? `${pathOf(group[1])} / ${nameOf(place)}` : nameOf(place)
}

describe('layout', () => {
  const tracks = places.filter(([, { kind }]) => kind !== 'group')

  test('docs/reference/tracks.md describes each track by its name and place, in this order, and no other', () => {
    const docs = readFileSync(fileURLToPath(new URL('../../docs/reference/tracks.md', import.meta.url)), 'utf8')
    const table = docs.slice(docs.indexOf('| track |'), docs.indexOf('\n\n', docs.indexOf('| track |')))
    const rows = table.split('\n').slice(2)
    const named = rows.map((row) => row.split(' | ')[0]!.slice(2)).filter((name) => name !== '') // '': the row above
    expect(named).toEqual(tracks.map(([, place]) => pathOf(place)))
  })

  test('the table has the order of the viewer: rows of an input by rank, members behind their group', () => {
    const fixed = places.filter(([, { parent, rank }]) => parent === 'run' && typeof rank === 'number')
    const ranks = fixed.map(([, { rank }]) => rank as number)
    expect(ranks).toEqual(ranks.toSorted((a, b) => a - b))
    for (const [i, [key, { parent }]] of places.entries()) {
      const before = places.slice(0, i).map(([name]) => name)
      expect([key, parent === 'trace' || before.includes(parent)]).toEqual([key, true])
    }
  })
})
