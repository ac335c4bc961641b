import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { type IssueEvent, lastTimeOf } from '../../lib/model/events.ts'
import { ISSUES } from '../../lib/model/issues.ts'
import { eventsIn, FIXTURE_NAMES, plainBytes, SCHEDULER_FIXTURES } from '../line/support.ts'

/** The catalogue of issues, and issues that no format owns. */

describe('the catalogue', () => {
  test.each(Object.entries(ISSUES))('%s has a phrase of its own and a hint', (code, { title, hint }) => {
    expect(code).toMatch(/^[a-z]+(-[a-z0-9]+)*$/)
    expect(title.length).toBeLessThan(60)
    expect(hint.length).toBeGreaterThan(20)
    expect(Object.values(ISSUES).filter((kind) => kind.title === title)).toHaveLength(1)
  })
})

describe('broken-gzip', () => {
  const TIMED = [...FIXTURE_NAMES, ...SCHEDULER_FIXTURES].filter((name) => plainBytes(name).length > 30_000)

  test.each(TIMED)('%s: is at the last time that was read, whatever kind of event that was', async (fixture) => {
    const torn = gzipSync(plainBytes(fixture), { level: 1 })
    const { events } = await eventsIn(new Uint8Array(torn.subarray(0, torn.length * 0.7)))
    const issue = events.find((event): event is IssueEvent => event.kind === 'issue' && event.code === 'broken-gzip')
    const lastNs = Math.max(...events.map((event) => (event === issue ? -Infinity : (lastTimeOf(event) ?? -Infinity))))
    expect(lastNs).toBeGreaterThan(0)
    expect(issue?.atNs).toBeGreaterThan(lastNs * 0.99)
    expect(issue?.atNs).toBeLessThanOrEqual(lastNs)
  })
})
