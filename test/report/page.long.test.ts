import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { compareRuns, dagOf, draw } from '../../lib/analysis.ts'
import { analyze } from '../../lib/index.ts'
import { drawSvg, inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { CHROMIUM } from '../browser.ts'
import { PageVisit } from './page-visit.ts'
import '../live.ts'

/** Reports in Chromium (needs chromium). */

const MOE = fileURLToPath(new URL('../recorded/outside-graphs.ggtrace.gz', import.meta.url))
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Opening takes 0.1 s; the machine of the tests may be busy. */

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-report-'))
const urls = { report: '', comparison: '' }
let visit: PageVisit

const inBrowser = CHROMIUM === undefined ? describe.skip : describe
inBrowser('a report in Chromium', () => {
  beforeAll(async () => {
    const analysis = await analyze(inputOf(MOE), { series: ['calls', 'memory', 'offsets', 'graph'] })
    const hostile = { ...analysis, run: { ...analysis.run, model: '</title><script>document.title="broken"</script>' } }
    const pages = {
      report: reportHtml(hostile, {
        drawing: {
          layer: 3,
          svg: await drawSvg(
            draw(dagOf(analysis.series!.graph!, { layers: [3, 3] }), { name: 'layer 3', views: false }),
          ),
        },
      }),
      comparison: reportHtml(compareRuns({ name: 'a', runs: [analysis] }, { name: 'b', runs: [analysis] })),
    }
    for (const name of ['report', 'comparison'] as const) {
      const path = join(folder, `${name}.html`)
      writeFileSync(path, pages[name])
      urls[name] = pathToFileURL(path).href
    }
    visit = await PageVisit.open()
  })
  afterAll(async () => {
    await visit?.close()
    rmSync(folder, { recursive: true })
  })

  const media = (scheme: string, kind = 'screen') =>
    visit.send('Emulation.setEmulatedMedia', {
      media: kind,
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    })
  const width = (pixels: number) =>
    visit.send('Emulation.setDeviceMetricsOverride', {
      width: pixels,
      height: 900,
      deviceScaleFactor: 1,
      mobile: pixels < 500,
    })

  test.each(['report', 'comparison'] as const)('%s: opens without a complaint or a request', async (name) => {
    visit.complaints.length = 0
    await visit.goto(urls[name])
    expect(visit.requests).toEqual([urls[name]])
    expect(visit.complaints).toEqual([])
    expect(await visit.evaluate('document.title')).not.toBe('broken')
  })

  test('its policy stops scripts and requests that are added to it', async () => {
    await visit.goto(urls.report)
    await visit.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<img src="https://example.org/x.png" onerror="document.title=1">')`,
    )
    await visit.evaluate(
      `document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = 2' }))`,
    )
    await visit.evaluate('new Promise((done) => setTimeout(done, 100))')
    expect(visit.requests).toEqual([urls.report])
    expect(await visit.evaluate('document.title')).toContain('script')
  })

  const VIEWS = [
    ['report', 'light', 1100],
    ['report', 'dark', 1100],
    ['comparison', 'dark', 390],
    ['report', 'light', 390],
    ['comparison', 'light', 1100],
  ] as const
  test.each(VIEWS)(
    '%s, %s, %d pixels: axe finds nothing, and nothing is wider than the page',
    async (name, scheme, pixels) => {
      await media(scheme)
      await width(pixels)
      await visit.send('Page.setBypassCSP', { enabled: true })
      await visit.goto(urls[name])
      await visit.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true; ${AXE}; 0`)
      const found = await visit.evaluate<unknown[]>(
        `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 200)]))`,
      )
      await visit.send('Page.setBypassCSP', { enabled: false })
      expect(found).toEqual([])
      expect(await visit.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(pixels)
    },
  )

  test('the theme: as the system has it, or as chosen; paper is light', async () => {
    const background = () => visit.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    const [light, dark] = ['rgb(255, 255, 255)', 'rgb(20, 23, 28)']
    await width(1100)
    await media('dark')
    await visit.goto(urls.report)
    expect(await background()).toBe(dark)
    await visit.evaluate(`document.getElementById('theme-light').click()`)
    expect(await background()).toBe(light)
    await media('light')
    await visit.evaluate(`document.getElementById('theme-dark').click()`)
    expect(await background()).toBe(dark)
    await media('dark', 'print')
    expect(await background()).toBe(light)
    await media('light')
  })

  test('numbers by keyboard: arrows read the marks of a drawing, Escape hides them', async () => {
    await width(1100)
    await visit.goto(urls.report)
    await visit.evaluate(`document.querySelector('.wide svg').focus()`)
    const tip = () =>
      visit.evaluate<string>(`((tip) => tip.hidden ? '' : tip.textContent)(document.getElementById('tip'))`)
    await visit.press('ArrowRight')
    const first = await tip()
    expect(first).toMatch(/^prefill: .*\n[\d.]+ %, /)
    await visit.press('ArrowRight')
    expect(await tip()).not.toBe(first)
    await visit.press('Home')
    expect(await tip()).toBe(first)
    await visit.press('Escape')
    expect(await tip()).toBe('')
    // Tab reaches the drawing, and the link that skips to the content is first.
    await visit.goto(urls.report)
    await visit.press('Tab')
    expect(await visit.evaluate('document.activeElement.className')).toBe('skip')
  })

  test('numbers under the pointer', async () => {
    await visit.goto(urls.report)
    const at = await visit.evaluate<{ x: number; y: number }>(
      `(() => { const svg = document.querySelectorAll('.wide svg')[1]; svg.scrollIntoView({ block: 'center' }); const { x, y, width, height } = svg.querySelector('rect').getBoundingClientRect(); return { x: x + width / 2, y: y + height / 2 } })()`,
    )
    await visit.evaluate('new Promise((done) => setTimeout(done, 100))')
    await visit.send('Input.dispatchMouseEvent', { type: 'mouseMoved', ...at })
    await visit.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    expect(await visit.evaluate(`document.getElementById('tip').textContent`)).toMatch(/^call \d+: /)
  })
})
