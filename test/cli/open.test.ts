import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { CHROMIUM, Sites } from '../browser.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { atraceOf, pageOf, streamedZipOf, zipOf } from '../read/packed.ts'
import { at, canMount, MOE, names, quoted, read, run, shell, start, useFolder, WARM_UP, withMount } from './helpers.ts'
import { browserFor, fetched, fetching, isFree, opened, PAGE, running, UI, usePort } from './open-helpers.ts'

useFolder()
usePort()

const OTHER = 'https://other.example'

/** Marks of a program in ftrace's text. */
const MARKS = fileURLToPath(new URL('../fixtures/ftrace/trace-marks.txt', import.meta.url))

beforeAll(() => {
  run([MOE, '-o', 'moe.pftrace'])
})

/** A packet of 1 MiB that has nothing in it but zeros: field 15 of TracePacket, which there is not. */
const padding = () =>
  // tag, 1 MiB as a varint
  Buffer.concat([Buffer.from([0x0a, 0x84, 0x80, 0x40, 0x7a, 0x80, 0x80, 0x40]), Buffer.alloc(1 << 20)])

describe('what is served', () => {
  test('a trace as it is; then the command ends, and the port is free', async () => {
    const { traceUrl, ended } = await opened(['moe.pftrace', '--no-browser'])
    expect(traceUrl).toMatch(/^http:\/\/127\.0\.0\.1:9001\/[\w-]{22}\/moe\.pftrace$/)
    expect((await fetched(traceUrl)).equals(read('moe.pftrace'))).toBe(true)
    const { code, stderr } = await ended
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^serving the trace \(\d+ KiB\) on 127\.0\.0\.1:9001, once, to https:\/\/ui\.perfetto\.dev only; Ctrl-C ends\nshorter: .*\nfor a browser on another machine.*\nthis ends when .*\nif the browser asks .*local network: allow it\nthe browser has the trace\n$/,
    )
    expect(await isFree()).toBe(true)
    await expect(fetched(traceUrl)).rejects.toThrow('ECONNREFUSED')
  })

  test('a log, converted as by the command without a name; nothing is left behind', async () => {
    const before = names()
    const { traceUrl, ended } = await opened([MOE], undefined, { TMPDIR: at('.') })
    expect(names()).toEqual(before)
    expect(traceUrl).toMatch(/\/moe\.csv\.pftrace$/)
    expect((await fetched(traceUrl)).equals(read('moe.pftrace'))).toBe(true)
    const { code, stdout, stderr } = await ended
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^decode 637 tok\/s; .*\n.*moe\.csv: 9 calls: prefill 16 tokens, decode 8 tokens\n {2}TTFT 26\.1 ms/,
    )
    expect(stderr).toMatch(/^no browser was opened: there is no display here; open the URL above yourself\n/)
    expect(names()).toEqual(before)
  })

  inLong(test)('a compressed trace, as it is', async () => {
    const packed = gzipSync(read('moe.pftrace'))
    writeFileSync(at('moe.pftrace.gz'), packed)
    const { traceUrl, ended } = await opened(['moe.pftrace.gz', '--no-browser'])
    expect((await fetched(traceUrl)).equals(packed)).toBe(true)
    expect((await ended).code).toBe(0)
  })

  inLong(test)('Chrome JSON, converted: the UI takes its times for numbers, which hold no nanoseconds', async () => {
    writeFileSync(at('chrome.json'), '[{"name":"a","ph":"X","ts":1745524740269514.732,"dur":2.001,"pid":1,"tid":1}]')
    run(['chrome.json', '-o', 'chrome.pftrace'])
    const { traceUrl, ended } = await opened(['chrome.json', '--no-browser'])
    expect((await fetched(traceUrl)).equals(read('chrome.pftrace'))).toBe(true)
    expect((await ended).code).toBe(0)
  })

  inLong(test).each([
    ['marks.html', pageOf],
    ['marks.atrace', atraceOf],
    ['marks.zip', (text: Uint8Array) => zipOf(text, 8)],
  ])('a text of the kernel packed as %s, converted as by the command without a name', async (name, pack) => {
    writeFileSync(at(name), pack(readFileSync(MARKS)))
    expect(run([name, '-o', 'marks.pftrace']).code).toBe(0)
    const { traceUrl, ended } = await opened([name, '--no-browser'])
    writeFileSync(at('served.pftrace'), await fetched(traceUrl))
    expect((await ended).code).toBe(0)
    const slices = (file: string) => run(['query', file, 'select count(*), sum(dur) from slice', '--format', 'csv'])
    expect(slices('served.pftrace').stdout).toBe(slices('marks.pftrace').stdout)
    expect(slices(name).stdout).not.toMatch(/\n0,/)
  })

  inLong(test)('an archive whose first file is a trace, as it is', async () => {
    const archive = await streamedZipOf(read('moe.pftrace'))
    writeFileSync(at('moe.zip'), archive)
    const { traceUrl, ended } = await opened(['moe.zip', '--no-browser'])
    expect((await fetched(traceUrl)).equals(archive)).toBe(true)
    expect((await ended).code).toBe(0)
  })

  inLong(test).each([
    ['a log', () => readFileSync(MOE), 'stdin.pftrace'],
    ['a trace', () => read('moe.pftrace'), 'stdin'],
  ])('%s from standard input', async (_, input, name) => {
    const { traceUrl, ended } = await opened(['-', '--no-browser', '-q'], input())
    expect(traceUrl.split('/').at(-1)).toBe(name)
    expect((await fetched(traceUrl)).equals(read('moe.pftrace'))).toBe(true)
    const { stdout, stderr } = await ended
    expect(stderr).toBe('')
    expect(stdout.split('\n').length).toBe(2) // only the URL
  })

  inLong(test)('part of a log, drawn otherwise', async () => {
    const options = ['--tokens', '2..3', '--detail', 'full', '--op-name', 'op']
    run([MOE, '-o', 'part.pftrace', ...options])
    const { traceUrl } = await opened([MOE, '--no-browser', ...options])
    expect((await fetched(traceUrl)).equals(read('part.pftrace'))).toBe(true)
  })

  test('several logs, as one trace', async () => {
    const [log, sched] = ['profinfer-csv/tiny.csv', 'profinfer-ktrace/tiny.txt'].map((name) =>
      resolve('test/fixtures', name),
    )
    run([log!, sched!, '-o', 'both.pftrace'])
    const { traceUrl, ended } = await opened([log!, sched!, '--no-browser'])
    expect(traceUrl).toMatch(/\/tiny\.csv\.pftrace$/)
    expect((await fetched(traceUrl)).equals(read('both.pftrace'))).toBe(true)
    expect((await ended).stdout).toMatch(/^.*tiny\.csv: .*^.*tiny\.txt: /ms)
  })

  inLong(test)('issues of a log are told, with --quiet too', async () => {
    writeFileSync(at('cut.csv'), readFileSync(MOE).subarray(0, 200_000))
    const { traceUrl, ended } = await opened(['cut.csv', '-q', '--no-browser'])
    await fetched(traceUrl)
    expect((await ended).stderr).toMatch(/^warning: cut\.csv: \d+ issues?, on the Issues track\n$/)
  })
})

describe('what is refused', () => {
  const fails = (args: string[], message: RegExp) => {
    const { code, stdout, stderr } = run(['open', '--no-browser', ...args])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(message)
  }

  test('no such file, a folder, neither trace nor log', () => {
    fails(['nope'], /^error: nope: cannot read: no such file/)
    fails(['.'], /is a directory/)
    writeFileSync(at('garbage'), Buffer.alloc(5000, 7))
    fails(['garbage'], /^error: garbage: not a known format; it begins with 07 /)
  })

  test('a log of which nothing can be drawn', () => {
    writeFileSync(
      at('irqs.txt'),
      '# tracer: nop\n     a-7 [000] .... 100.000001: irq_handler_entry: irq=1 name=timer\n',
    )
    fails(
      ['irqs.txt'],
      /^error: irqs\.txt: nothing in it can be drawn: as ftrace .* 1 irq_handler_entry\nhint: Perfetto /,
    )
  })

  test('a trace among several inputs, stdin twice', () => {
    fails(
      [MOE, 'moe.pftrace'],
      /^error: moe\.pftrace: is a trace already, there is nothing to convert\nhint: ggml2perfetto open/,
    )
    fails(['-', '-'], /^error: stdin \(-\) can be read only once\n$/)
  })

  test('options for logs, of a trace', () => {
    for (const option of ['--tokens=1', '--detail=full', '--op-name=op', '--op-table=v4', '--clock=moe.pftrace=mono']) {
      fails(['moe.pftrace', option], /^error: --[\w-]+ is for logs; moe\.pftrace is a trace|no known table/)
    }
    fails([MOE, '--tokens', '99'], /nothing to convert, the log has the calls 0\.\.8/)
  })

  const mounted = canMount() ? test : test.skip
  mounted('no room for a converted log (needs mount)', () => {
    withMount('tiny', 'size=64k', () => {
      const { code, stderr } = shell(`TMPDIR=${quoted(at('tiny'))} $CLI open $MOE --no-browser`)
      expect(code).toBe(1)
      expect(stderr).toMatch(/tiny: cannot keep the trace here: no space left on device\nhint: TMPDIR=/)
    })
  })
})

const LARGE = [
  ['large.pftrace.gz', 2 ** 29, '1.5 GiB decompressed, about'],
  ['large.pftrace', 2 ** 30 + 1, '1 GiB'],
] as const
inParts(test).each(someOf(LARGE, 2, 1))(
  'too large a trace: what to do instead (%s)',
  async (name: string, size: number, told: string) => {
    writeFileSync(at(name), name.endsWith('.gz') ? gzipSync(read('moe.pftrace')) : read('moe.pftrace'))
    truncateSync(at(name), size) // a hole: it takes no room
    const { child, ended } = await opened([name, '--no-browser', '-q'])
    child.kill('SIGINT')
    const { stderr } = await ended
    expect(stderr).toMatch(`warning: the trace is large (${told}): a browser can hold some 1 GiB\n`)
    expect(stderr).toMatch(`\n  trace_processor server http ${name}   # then open https://ui.perfetto.dev,`)
  },
)

const SIGNALS = Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })
inParts(describe).each(someOf(SIGNALS, 3))('%s', (signal: string, code: number) => {
  test.each([
    ['while it waits', async () => undefined],
    [
      'while the browser fetches',
      async (url: string) => {
        const answer = await fetching(url)
        answer.on('error', () => undefined)
        await once(answer, 'readable')
      },
    ],
  ])('%s: it ends at once, the port is free, nothing is left behind', async (_, before) => {
    writeFileSync(at('long.pftrace'), Buffer.concat([read('moe.pftrace'), ...Array.from({ length: 12 }, padding)]))
    const files = names()
    const { child, traceUrl, ended } = await opened(['long.pftrace', '--no-browser', '-q'], undefined, {
      TMPDIR: at('.'),
    })
    await before(traceUrl)
    child.kill(signal as NodeJS.Signals)
    expect(await ended).toMatchObject({ code, stderr: 'interrupted: the trace was not fetched\n' })
    expect(await isFree()).toBe(true)
    expect(names()).toEqual(files)
  })
})

test('Ctrl-C while a log is being converted: nothing is left behind', async () => {
  const files = names()
  const child = start(['open', '-', '--no-browser'], { TMPDIR: at('.') })
  running.push(child)
  let stderr = ''
  child.stderr.on('data', (text) => (stderr += text))
  child.stdin.on('error', () => undefined) // it may be gone before it has all
  child.stdin.write(readFileSync(MOE).subarray(0, 300_000))
  while (await isFree()) await sleep(50)
  child.kill('SIGINT')
  expect(await once(child, 'close')).toEqual([130, null])
  expect(stderr).toBe('interrupted: the trace was not fetched\n')
  expect(names()).toEqual(files)
})

inLong(test)('kill -9: nothing is left behind', async () => {
  const files = names()
  const { child, ended } = await opened([MOE, '--no-browser'], undefined, { TMPDIR: at('.') })
  child.kill('SIGKILL')
  await ended
  expect(names()).toEqual(files)
  expect(await isFree()).toBe(true)
})

describe('the browser is opened', () => {
  /** A program that writes its arguments to the file `name`.txt. */
  const opener = (name: string, then = '') => {
    writeFileSync(at(name), `#!/bin/sh\nprintf '%s\\n' "$@" > "${at(`${name}.txt`)}"\n${then}\n`)
    chmodSync(at(name), 0o755)
  }
  const display = { PATH: '/nowhere', DISPLAY: ':0' }
  /** What the program got: the UI's URL, and that of the trace in it. */
  const urlOf = async (name: string) => {
    let text = ''
    while (!text.endsWith('\n')) {
      await sleep(20)
      text = existsSync(at(`${name}.txt`)) ? String(read(`${name}.txt`)) : ''
    }
    rmSync(at(`${name}.txt`))
    const url = text.trim()
    return [url, new URLSearchParams(url.slice(`${UI}/#!/?`.length)).get('url')!] as const
  }

  inLong(test)('on Windows, outside of the Linux that runs this: with the URL that is printed', async () => {
    opener('xdg-open')
    const windows = { PATH: at('.'), WSL_DISTRO_NAME: 'Debian' }
    const { url, ended } = await opened(['moe.pftrace'], undefined, windows)
    const [given, givenTrace] = await urlOf('xdg-open')
    expect(given).toBe(url)
    expect(await fetched(givenTrace)).toEqual(read('moe.pftrace'))
    await ended
  })

  test('with the URL, by xdg-open', async () => {
    opener('xdg-open')
    const { url, ended } = await opened(['moe.pftrace'], undefined, { ...display, PATH: at('.') })
    const [given, givenTrace] = await urlOf('xdg-open')
    const secret = /(?<=9001%2F)[^%]+/
    expect(given).not.toBe(url)
    expect(given.replace(secret, '')).toBe(url.replace(secret, ''))
    expect(await fetched(givenTrace)).toEqual(read('moe.pftrace'))
    expect((await ended).stderr).not.toMatch('no browser')
  })

  const asOther = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const canBeOther = spawnSync(asOther[0]!, [...asOther.slice(1), 'true']).status === 0
  const otherTest = canBeOther ? test : test.skip
  inLong(otherTest)('what another user sees in its arguments is of no use to that user (needs root)', async () => {
    opener('xdg-open')
    const { traceUrl, child, ended } = await opened(['moe.pftrace'], undefined, { ...display, PATH: at('.') })
    const [, givenTrace] = await urlOf('xdg-open')
    const headers = "{ method: 'HEAD', headers: { origin: process.argv[2] } }"
    const request = `require('http').request(process.argv[1], ${headers}, (r) => console.log(r.statusCode)).end()`
    const statusFor = (address: string, as: readonly string[] = []) => {
      const [command, ...args] = [...as, process.execPath, '-e', request, address, UI]
      return spawnSync(command!, args, { encoding: 'utf8' }).stdout.trim()
    }
    expect(statusFor(givenTrace, asOther)).toBe('404')
    expect(child.exitCode).toBe(null)
    // The URL that was printed is for whoever it is given to.
    expect(statusFor(traceUrl, asOther)).toBe('200')
    expect(await fetched(givenTrace)).toEqual(read('moe.pftrace'))
    expect((await ended).code).toBe(0)
  })

  inLong(test)('it fails, or there is none: the URL is there to be opened by hand', async () => {
    opener('xdg-open', 'exit 3')
    const failed = await opened(['moe.pftrace'], undefined, { ...display, PATH: at('.') })
    await fetched(failed.traceUrl)
    expect((await failed.ended).stderr).toMatch(
      /^no browser was opened: xdg-open failed; open the URL above yourself\n/,
    )
    const none = await opened(['moe.pftrace'], undefined, { ...display, SSH_CONNECTION: '1 2 3 4' })
    await fetched(none.traceUrl)
    const { stderr } = await none.ended
    expect(stderr).toMatch(/^no browser was opened: there is no xdg-open or wslview; open/)
    expect(stderr).toMatch(/^for a browser on another machine, first run there: ssh -L 9001:127\.0\.0\.1:9001 /m)
  })
})

const inChromium = CHROMIUM === undefined ? describe.skip : describe
inLong(inChromium)('in Chromium (needs chromium, openssl)', () => {
  let sites: Sites
  beforeAll(async () => {
    sites = await Sites.open(PAGE, ['ui.perfetto.dev', 'other.example'])
  })
  afterAll(() => sites.close())

  const hash = async () => new Uint8Array(await crypto.subtle.digest('SHA-256', read('moe.pftrace'))).join()
  const blocked = { status: undefined, error: 'TypeError: Failed to fetch' }
  const hashOf = (url: string) => url.slice(url.indexOf('#'))

  test('a page of ui.perfetto.dev gets the trace, once', async () => {
    const { url, ended } = await opened(['moe.pftrace', '--no-browser'])
    // That it may not be had without CORS has to be tried before it is gone: the page does.
    expect(await sites.visit(url)).toEqual({ origin: UI, probe: 404, status: 200, hash: await hash(), opaque: 0 })
    expect((await ended).code).toBe(0)
    expect(await sites.visit(url)).toEqual({
      origin: UI,
      probe: 'TypeError: Failed to fetch',
      ...withoutUndefined(blocked),
    })
  })

  test('a page of another origin does not, even if it knows the address; it can still be had', async () => {
    const { url, traceUrl, child, ended } = await opened(['moe.pftrace', '--no-browser'])
    const report = await sites.visit(`${OTHER}/${hashOf(url)}`)
    expect(report).toEqual({ origin: OTHER, probe: 'TypeError: Failed to fetch', error: blocked.error, opaque: 0 })
    expect(child.exitCode).toBe(null)
    expect((await fetched(traceUrl)).length).toBe(read('moe.pftrace').length)
    expect((await ended).code).toBe(0)
  })

  test('a site of the internet gets it if the user allows that, and not otherwise', async () => {
    const { url, child, ended } = await opened(['moe.pftrace', '--no-browser'])
    expect(await sites.visit(url, { isPublic: true })).toMatchObject({ origin: UI, error: blocked.error })
    expect(child.exitCode).toBe(null)
    const report = await sites.visit(url, { isPublic: true, allowed: [UI] })
    expect(report).toMatchObject({ origin: UI, status: 200, hash: await hash() })
    expect((await ended).code).toBe(0)
  })

  test('after Ctrl-C there is nothing to be had', async () => {
    const { url, child, ended } = await opened(['moe.pftrace', '--no-browser'])
    child.kill('SIGINT')
    expect((await ended).code).toBe(130)
    expect(await sites.visit(url)).toMatchObject({ origin: UI, error: blocked.error })
  })

  test('opened by the command itself, from a log, through xdg-open', async () => {
    const report = sites.report()
    const { ended } = await opened([WARM_UP], undefined, { BROWSER: browserFor(sites) })
    expect(await report).toMatchObject({ origin: UI, status: 200 })
    expect((await ended).code).toBe(0)
    process.kill(Number(read('browser.pid')))
  })
})

/** As JSON has it. */
function withoutUndefined(value: object): object {
  return JSON.parse(JSON.stringify(value))
}
