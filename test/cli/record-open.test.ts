import { writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { CHROMIUM, Sites } from '../browser.ts'
import { inLong } from '../long.ts'
import { at, names, read, run } from './helpers.ts'
import { browserFor, fetched, isFree, occupyPort, PAGE, showing, UI, usePort } from './open-helpers.ts'
import { canRecord, linuxTest, rootTest, useProgram } from './record-helpers.ts'

/** `record --open`: records, converts and opens. */

useProgram()
usePort()

describe('record --open', () => {
  const CALLER = ['--', './caller']
  const FAILING = ['--children', '--', 'sh', '-c', './caller; exit 9']

  linuxTest('shows what was recorded; stdout and the exit code are those of the program', async () => {
    const { url, traceUrl, ended } = await showing(['record', '--open', '-o', 'opened.ggtrace', ...FAILING])
    run(['opened.ggtrace', '-o', 'opened.pftrace'])
    expect((await fetched(traceUrl)).equals(read('opened.pftrace'))).toBe(true)
    const { code, stdout, stderr } = await ended
    expect([code, stdout]).toEqual([9, 'said\n'])
    expect(stderr).toMatch(
      /^decode .*\nopened\.ggtrace: 2 calls.*\nwrote opened\.ggtrace \(.*\)\nhttps:.*\nno browser was opened: there is no display here;.*\nserving the trace /s,
    )
    expect(stderr).not.toMatch('next:')
    expect(stderr.match(/: 2 calls/g)).toHaveLength(1)
    expect(decodeURIComponent(url)).toMatch(/visStart=\d+&visEnd=\d+/)
  })

  inLong(linuxTest)('of several processes in one trace; with --quiet only the URL', async () => {
    const command = ['--', 'sh', '-c', './caller; ./caller']
    const { traceUrl, ended } = await showing([
      'record',
      '--open',
      '--no-browser',
      '-q',
      '--children',
      '-o',
      'two.ggtrace',
      ...command,
    ])
    writeFileSync(at('two.pftrace'), await fetched(traceUrl))
    const runs = run([
      'query',
      'two.pftrace',
      "select count(*) as runs from track where name glob 'LLM *'",
      '--format=csv',
    ])
    expect(runs.stdout).toBe('runs\n2\n')
    expect(await ended).toMatchObject({
      code: 0,
      stdout: 'said\nsaid\n',
      stderr: expect.stringMatching(/^https:.*\n$/),
    })
  })

  inLong(rootTest)('with --sched: the scheduler events, too (needs root, tracefs)', async () => {
    const { traceUrl, ended } = await showing([
      'record',
      '--open',
      '--no-browser',
      '--sched',
      '-o',
      'sched.ggtrace',
      ...CALLER,
    ])
    writeFileSync(at('sched.pftrace'), await fetched(traceUrl))
    const hasSched = (await ended).stderr.includes('wrote sched.sched.dat')
    const switches = run(['query', 'sched.pftrace', 'select count(*) > 0 as n from sched_slice', '--format=csv'])
    expect(switches.stdout).toBe(`n\n${hasSched ? 1 : 0}\n`)
  })

  linuxTest('nothing was recorded: no browser, no port, and why', async () => {
    const { code, stderr } = run(['record', '--open', 'sh', '-c', 'exit 3'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/^no ggml call was seen in sh and its children: .*\n--open: there is nothing to show\n$/s)
    expect(await isFree()).toBe(true)
  })

  linuxTest(
    'where the port is in use, a page of its own has the trace; the exit code is that of the program',
    async () => {
      await occupyPort()
      const { url, traceUrl, ended } = await showing(['record', '--open', '-o', 'a log.ggtrace', ...FAILING])
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/.*\.html$/)
      expect((await fetched(traceUrl, { 'sec-fetch-site': 'same-origin' })).length).toBeGreaterThan(1000)
      const { code, stderr } = await ended
      expect(code).toBe(9)
      expect(stderr).toMatch(/\nport 9001 is in use: serving the trace /)
      expect(names()).toContain('a log.ggtrace')
    },
  )

  linuxTest('--no-browser without it', () => {
    expect(run(['record', '--no-browser', 'true'])).toMatchObject({
      code: 1,
      stderr: 'error: --no-browser: expected --open, too\n',
    })
  })

  const browserTest = canRecord && CHROMIUM !== undefined ? test : test.skip
  inLong(browserTest)('in Chromium, which fetches the trace (needs chromium, openssl, cc)', async () => {
    const sites = await Sites.open(PAGE, ['ui.perfetto.dev'])
    try {
      const report = sites.report()
      const command = ['record', '--open', '-o', 'browsed.ggtrace', ...CALLER]
      const { url, ended } = await showing(command, undefined, { BROWSER: browserFor(sites) })
      run(['browsed.ggtrace', '-o', 'browsed.pftrace'])
      const digest = await crypto.subtle.digest('SHA-256', read('browsed.pftrace'))
      expect(await report).toMatchObject({ origin: UI, status: 200, hash: new Uint8Array(digest).join() })
      expect(url).toMatch(/&startupCommands=/)
      const { code, stdout, stderr } = await ended
      expect([code, stdout]).toEqual([0, 'said\n'])
      expect(stderr).toMatch(/\nthe browser has the trace\n$/)
      process.kill(Number(read('browser.pid')))
    } finally {
      await sites.close()
    }
  })
})
