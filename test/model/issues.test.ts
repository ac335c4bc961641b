import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { convert, type Input } from '../../lib/index.ts'
import { type IssueEvent, lastTimeOf } from '../../lib/model/events.ts'
import { ISSUES, type IssueKind } from '../../lib/model/issues.ts'
import { eventsIn, FIXTURE_NAMES, plainBytes, SCHEDULER_FIXTURES } from '../line/support.ts'
import { PROVOKED, type Provocation } from './provoked.ts'
import { PROVOKED_BY_KERNEL } from './provoked-kernel.ts'

/** The catalogue of issues: each is provoked by an input. */

/** Codes of the issues of all inputs of a conversion. */
async function codesOf(provocation: Provocation): Promise<(string | undefined)[]> {
  const isOne = (one: Provocation): one is Input => !Array.isArray(one)
  const [inputs, options] = isOne(provocation) ? [[provocation]] : provocation
  const pieces = convert([...inputs], options)
  let next = await pieces.next()
  while (!next.done) next = await pieces.next()
  return next.value.flatMap(({ issues }) => issues.map(({ code }) => code))
}

describe('the catalogue', () => {
  test.each(Object.entries(ISSUES))('%s has a phrase of its own and a hint', (code, { title, hint }) => {
    expect(code).toMatch(/^[a-z]+(-[a-z0-9]+)*$/)
    expect(title.length).toBeLessThan(60)
    expect(hint.length).toBeGreaterThan(20)
    expect(Object.values(ISSUES).filter((kind) => kind.title === title)).toHaveLength(1)
  })

  const provoked = { ...PROVOKED, ...PROVOKED_BY_KERNEL }
  const provocations = Object.entries(provoked)

  test('each code has an input that provokes it', () => {
    expect(Object.keys(provoked).sort()).toEqual(Object.keys(ISSUES).sort())
  })

  test.each(provocations)('%s is provoked', async (code, provocation) => {
    expect(await codesOf(provocation())).toContain(code)
  })
})

test('docs/reference/issues.md lists the catalogue (WRITE_DOCS=1 writes it)', () => {
  const path = fileURLToPath(new URL('../../docs/reference/issues.md', import.meta.url))
  const text = readFileSync(path, 'utf8')
  const [head] = text.split('\n| `')
  const rows = Object.entries<IssueKind>(ISSUES).map(([code, { title, hint, isLoss, lost }]) => {
    const loss = isLoss ? ['yes', ...(lost ? [lost.join(', ')] : [])].join(': ') : ''
    return `| \`${code}\` | ${title} | ${loss} | ${hint} |`
  })
  const wanted = `${head!.trimEnd()}\n${rows.join('\n').replaceAll('<', '\\<')}\n`
  if (process.env['WRITE_DOCS']) writeFileSync(path, wanted)
  else expect(text).toBe(wanted)
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
