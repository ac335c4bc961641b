import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { madeRun } from '../analyze/findings/made-run.ts'
import { at, MOE, names, read, run, useFolder } from './helpers.ts'

/** `report`, and `compare --report`. */

const LOG = fileURLToPath(new URL('../../examples/moe.ggtrace.gz', import.meta.url))

useFolder()

describe('report', () => {
  test('writes a page named after the log', () => {
    const { code, stdout, stderr } = run(['report', LOG])
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(
      /^nothing unusual: decode .*\n {2}.*\nwrote moe\.ggtrace\.html \(\d+ KiB\), a page for browsers\n$/,
    )
    const page = read('moe.ggtrace.html').toString()
    expect(page).toMatch(/^<!DOCTYPE html>\n/)
    expect(page.length).toBeLessThan(2e6)
    for (const part of [
      'Weights read by offset',
      'Live bytes of',
      'Time of decode over calls',
      'Choices of experts',
      'Layer 3 in call',
    ])
      expect(page).toContain(`<h3>${part}`)
  })

  test('what the run would be without what a finding names, and with other threads by other runs', async () => {
    run(['report', fileURLToPath(new URL('../printed/logs/before.ggtrace.gz', import.meta.url)), '-o', 'before.html'])
    const changes = (name: string) => [
      ...read(name)
        .toString()
        .matchAll(/<th scope="row" class="text">(without \w+|\d+ threads?)<\/th>/g),
    ]
    expect(changes('before.html').map(([, change]) => change)).toEqual(['without preempted'])
    for (const [threads, ns] of [
      [1, 2_000_000],
      [2, 1_200_000],
    ] as const) {
      const steps = [{ name: 'ffn_out-0', op: 'MUL_MAT', ns: Array.from({ length: threads }, () => ns) }]
      const calls = Array.from({ length: 24 }, () => ({ phase: 'decode' as const, steps }))
      const analysis = await analyze(madeRun({ calls }), { series: ['calls', 'steps'] })
      writeFileSync(at(`t${threads}.json`), JSON.stringify(analysis))
    }
    run(['report', 't1.json', '--with', 't2.json', '-o', 'threads.html'])
    expect(changes('threads.html').map(([, change]) => change)).toEqual(['2 threads', '4 threads'])
    expect(run(['report', LOG, '--with', 't2.json', '--to', 'issue']).stderr).toBe(
      'error: --with: only for the page of one run\n',
    )
  })

  test("--to issue: the parts of llama.cpp's form, and figures without host, folders and prompts", () => {
    const stored = JSON.parse(run(['stats', LOG, '--json']).stdout)
    stored.run.host = 'secret-host'
    stored.run.command = "/home/me/bin/llama-cli -m /home/me/models/moe.gguf -p 'my secret' --api-key=x -t 2"
    writeFileSync(at('private.json'), JSON.stringify(stored))
    const { code, stderr } = run(['report', 'private.json', '--to', 'issue'])
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /^nothing unusual: decode .*\n(?: {2}.*\n)?wrote private\.json\.json\.gz \(.*\), to attach\nwrote private\.json\.md: look at it/,
      ),
    ])
    const text = read('private.json.md').toString()
    expect(text.match(/^### .*/gm)).toEqual(
      [
        ...['Name and Version', 'Operating systems', 'GGML backends', 'Hardware', 'Models', 'Command line'],
        ...['Problem description & steps to reproduce', 'First Bad Commit', 'Relevant log output'],
      ].map((title) => `### ${title}`),
    )
    expect(text).toContain('\nllama-cli -m moe.gguf -p … --api-key=… -t 2\n')
    const figures = gunzipSync(read('private.json.json.gz'))
    expect(figures.length).toBeGreaterThan(10_000)
    expect(read('private.json.json.gz').length).toBeLessThan(1e6)
    for (const content of [text, figures.toString()]) expect(content).not.toMatch(/secret|\/home\/|host":"/)
    writeFileSync(at('again.json'), figures)
    expect(run(['stats', 'again.json']).code).toBe(0)
  })

  test('-o, --title, peaks; a stored Analysis; standard output', () => {
    run(['report', LOG, '--title', 'Mine & yours', '--peak-gflops', '100', '--peak-gbs', '10', '-o', 'own.html'])
    expect(read('own.html').toString()).toContain('<h1>Mine &amp; yours</h1>')
    expect(/The line is[^<]*/.exec(read('own.html').toString())?.[0]).toContain(
      '10 GB/s and 100 GFLOP/s; above 10 FLOP/byte (the ridge)',
    )
    writeFileSync(at('run.json'), run(['stats', LOG, '--json', '--series', 'calls,memory,offsets,graph']).stdout)
    const { code, stdout, stderr } = run(['report', 'run.json', '-o', '-'])
    expect([code, stderr]).toEqual([0, ''])
    run(['report', LOG, '-o', 'log.html'])
    expect(stdout).toBe(read('log.html').toString())
  })

  test('says what is wrong, and leaves nothing behind', () => {
    mkdirSync(at('folder'))
    writeFileSync(at('empty.ggtrace'), '')
    const before = names()
    expect(run(['report', LOG, '-o', 'folder'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: folder: cannot write: is a directory\nhint: .*\.html\n$/),
    })
    expect(run(['report', LOG, '-o', LOG]).stderr).toMatch(/is the input itself/)
    expect(run(['report', 'empty.ggtrace'])).toMatchObject({
      code: 1,
      stderr: 'error: empty.ggtrace: the input is empty (0 bytes)\n',
    })
    expect(run(['report']).stderr).toBe('error: no input is given\nhint: ggml2perfetto report --help\n')
    expect(run(['report', LOG, '-o', 'none/x.html'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no such folder'),
    })
    expect(names()).toEqual(before)
  })

  test('--help', () => {
    expect(run(['report', '--help']).stdout).toMatch(/^ggml2perfetto report <inputs\.\.>\n/)
    expect(run(['--help']).stdout).toMatch(/\n {2}ggml2perfetto report <inputs\.\.> +Write a report/)
  })
})

test('compare --report', () => {
  const { code, stdout } = run(['compare', LOG, '--with', MOE, '--report', 'both.html'])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^not comparable: .*\n\nsides\n/)])
  const page = read('both.html').toString()
  expect(page).toContain('<h3>Time of a call of decode on both sides</h3>')
  expect(page).toContain('moe.csv')
  expect(run(['compare', LOG, '--with', MOE, '--report', '-']).stderr).toMatch(
    /^error: --report -: expected the name of a file/,
  )
})
