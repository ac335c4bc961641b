import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { build } from 'esbuild'
import { sha256 } from '../cli/record-helpers.ts'
import { needsOf } from '../elf.ts'
import { ROOT } from '../root.ts'
import { testInEmptyRoot } from './empty-root.ts'
import { install, releasedAgain } from './installed.ts'

/** The package as users get it: packed, installed into an empty folder, and used from there. */

const MOE = join(ROOT, 'examples/moe.csv')
const ENTRIES = ['index', 'core', 'perfetto', 'sql', 'analysis', 'report', 'tables', 'node', 'datasets', 'worker']
let folder: string
let tarball: string
let packed: string[]

const run = (command: string, args: string[], cwd = folder) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Node without V8's optimizing compilers, which take longer for trace_processor than all else in these programs. */
const runNode = (...args: string[]) => run(process.execPath, ['--liftoff-only', '--no-opt', ...args])

const hasTool = (name: string) => {
  try {
    return run(name, ['--version'], ROOT).length > 0
  } catch {
    return false
  }
}

const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return name
}

beforeAll(() => {
  ;({ folder, tarball, packed } = install())
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('holds the builds, their types, trace_processor, the native parts, and nothing of the workshop', () => {
  const expected = ENTRIES.flatMap((name) => ['js', 'cjs', 'd.ts', 'd.cts'].map((ending) => `dist/${name}.${ending}`))
  expected.push('dist/ggml2perfetto.js', 'dist/cli/main.js', 'dist/analysis.schema.json')
  expected.push('LICENSE', 'NOTICE', 'README.md', 'CHANGELOG.md', 'native/log/ggtrace.h', 'native/ebpf/sched.bt')
  expected.push(
    'SKILL.md',
    'dist/ggml2perfetto-mcp.js',
    'vendor/trace_processor.wasm',
    'vendor/trace_processor.LICENSE',
  )
  expected.push('docs/library.md', 'lib/query/sql/ggml/calls.sql', 'lib/query/sql/ggml.textproto')
  const compilers = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc', [process.arch]: 'cc' }
  const architectures = Object.entries(compilers).flatMap(([arch, compiler]) => (hasTool(compiler) ? [arch] : []))
  for (const arch of process.platform === 'linux' ? architectures : []) {
    for (const name of ['libggml2perfetto.so', 'libggml2perfetto-nvtx.so', 'peaks']) {
      expected.push(`dist/native/linux-${arch}/${name}`)
      const { machine, versions } = needsOf(join(folder, `node_modules/ggml2perfetto/dist/native/linux-${arch}`, name))
      expect([arch, machine]).toEqual([arch, arch === 'arm64' ? 183 : 62])
      expect(versions.filter((version) => /^GLIBC_2\.(3[2-9]|[4-9]\d)/.test(version))).toEqual([])
    }
  }
  if (process.arch === 'x64' && hasTool('musl-gcc')) expected.push('dist/native/linux-x64-musl/libggml2perfetto.so')
  expected.push('dist/native/SHA256SUMS')
  expect(expected.filter((path) => !packed.includes(path))).toEqual([])
  expect(
    packed.filter((path) =>
      /^(lib\/(?!query\/sql\/)|(bin|test|scripts|node_modules|\.ci)\/)|tmp|\.map$|^docs\/images/.test(path),
    ),
  ).toEqual([])
})

test('the native parts have the hashes that are listed, and are the same when they are built again, elsewhere', () => {
  const native = join(folder, 'node_modules/ggml2perfetto/dist/native')
  const lines = readFileSync(join(native, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')
  const listed = lines.map((line) => line.split('  ') as [string, string])
  expect(listed.map(([, name]) => `dist/native/${name}`).sort()).toEqual(
    packed.filter((path) => /^dist\/native\/linux/.test(path)).sort(),
  )
  for (const [hash, name] of listed) expect([name, sha256(join(native, name))]).toEqual([name, hash])
  for (const [hash, name] of listed) expect([name, sha256(releasedAgain(name))]).toEqual([name, hash])
})

testInEmptyRoot(() => folder)

describe('by checkers of packages', () => {
  for (const [name, args] of [
    ['publint', ['run', '--strict']],
    // WASM and JSON have no types.
    [
      'attw',
      '--exclude-entrypoints trace_processor.wasm analysis.schema.json --profile node16 --format ascii'.split(' '),
    ],
  ] as const) {
    const testIf = hasTool(name) ? test : test.skip
    testIf(`${name} finds no problem`, () => {
      expect(run(name, [...args, tarball])).toContain('ggml2perfetto') // exits with an error if it finds one
    })
  }
})

describe('in Node', () => {
  test('as an ES module: converts, and asks SQL', () => {
    const program = write(
      'use.mjs',
      `import { convertFile, openTrace, record } from 'ggml2perfetto/node'
       const { summaries } = await convertFile(${JSON.stringify(MOE)}, 'esm.pftrace.gz')
       const trace = await openTrace('esm.pftrace.gz')
       const [[n]] = trace.query("select count(*) from slice where category = 'operator'").rows
       console.log(n === summaries[0].operators, n, typeof record)`,
    )
    expect(runNode(program)).toBe('true 2664 function\n')
  })

  test('as CommonJS: converts, and asks SQL', () => {
    const program = write(
      'use.cjs',
      `const { convert } = require('ggml2perfetto')
       const { inputOf, openTrace } = require('ggml2perfetto/node')
       openTrace(convert(inputOf(${JSON.stringify(MOE)}))).then((trace) => {
         console.log(trace.query("select count(*) from slice where category = 'operator'").rows[0][0])
       })`,
    )
    expect(runNode(program)).toBe('2664\n')
  })

  test('each entry has the same names for import and require, under each condition', () => {
    const program = write(
      'names.mjs',
      `import { createRequire } from 'node:module'
       const require = createRequire(import.meta.url)
       const entries = ${JSON.stringify(ENTRIES.map((name) => (name === 'index' ? '' : `/${name}`)))}
       for (const entry of entries) {
         const esm = Object.keys(await import('ggml2perfetto' + entry)).filter((name) => name !== 'module.exports')
         console.log(entry, esm.sort().join() === Object.keys(require('ggml2perfetto' + entry)).sort().join(), esm.join())
       }`,
    )
    const names = runNode(program)
    expect(names).not.toContain(' false ')
    for (const condition of ['browser', 'worker']) expect(runNode('-C', condition, program)).toBe(names)
  })

  test('the command', () => {
    expect(run('npx', ['--no-install', 'ggml2perfetto', MOE, '-o', 'cli.pftrace'])).toContain('wrote cli.pftrace')
    expect(run('npx', ['--no-install', 'ggml2perfetto-mcp', '--version'])).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(readdirSync(join(folder, 'node_modules'))).not.toContain('zod')
  })
})

describe('in TypeScript, strict, libraries checked, too', () => {
  const PROGRAM = `
    import { convert, eventsOf, type Format, gzip, type Input, Names, type Summary, toWebStream } from 'ggml2perfetto'
    import { LineCursor, type OwnEvent, type TraceEvent, UNKNOWN } from 'ggml2perfetto/core'
    import { type OpenTrace, openTrace } from 'ggml2perfetto/sql'

    export const format: Format = {
      name: 'mine', title: 'Mine', sniff: (head) => head[0] === 1,
      async *read(source, { names }) {
        const lines = new LineCursor(source, 'mine')
        await lines.fill()
        const events: TraceEvent[] = [{ ...UNKNOWN.tensor, id: 0, name: names.id(lines.text) }]
        yield events
      },
    }
    export const own: OwnEvent = { kind: 'own-sample', track: 0, atNs: 1, value: 2 }
    export const inputs: Input[] = [
      { name: 'bytes', source: new Uint8Array(1) },
      { name: 'own', events: () => [[own]] },
    ]
    export async function summaries(input: Input): Promise<Summary[]> {
      const pieces = gzip(convert(input, { formats: [format], detail: 'full' }))
      for (;;) {
        const next = await pieces.next()
        if (next.done) return next.value
      }
    }
    export const events = eventsOf(inputs[0]!, new Names())
    export async function names(trace: OpenTrace): Promise<string[]> {
      const { rows } = await openTrace(new Uint8Array(), { wasm: new Uint8Array() })
      return [...rows<{ name: string }>('select name from slice where dur > ?', [5]), ...trace.rows<{ name: string }>('')].map(({ name }) => name)
    }
    // @ts-expect-error: no such detail
    convert(inputs, { detail: 'everything' })
  `
  const WEB = `${PROGRAM}
    export const web = async (blob: Blob, response: Response, stream: ReadableStream<Uint8Array>, file: File) => {
      for (const source of [blob, response, stream, file]) inputs.push({ name: 'web', source })
      return new Response(toWebStream(convert(inputs))).blob()
    }`
  const NODE = `
    import { createReadStream } from 'node:fs'
    import { Readable } from 'node:stream'
    import { convert, toWebStream } from 'ggml2perfetto'
    import { convertFile, openTrace, record } from 'ggml2perfetto/node'

    export async function use(): Promise<number> {
      const { summaries } = await convertFile('a', 'b', { tokens: [1, 2] })
      const trace = await openTrace(convert({ name: 'run', source: createReadStream('a') }))
      Readable.from(convert({ name: 'run', source: Readable.toWeb(createReadStream('a')) }))
      convert({ name: 'blob', source: new Blob([]) })
      convert({ name: 'response', source: new Response(toWebStream(convert([]))) })
      const rows: readonly (readonly unknown[])[] = trace.query('select 1').rows
      return (summaries[0]?.operators ?? 0) + rows.length + (typeof record === 'function' ? 1 : 0)
    }`

  /** Compiles the programs and fails with what the compiler says. */
  const compile = (names: string[], options: Record<string, unknown>) => {
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
      target: 'ES2022',
    }
    const config = write(
      `${names[0]}.json`,
      JSON.stringify({ compilerOptions: { ...strict, ...options }, files: names }),
    )
    try {
      return run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config])
    } catch (error) {
      return (error as { stdout: string }).stdout
    }
  }

  beforeAll(() => {
    mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
    }
  })

  test('moduleResolution nodenext, as module and as CommonJS, with Node’s types', () => {
    const names = [write('node.mts', NODE), write('node.cts', NODE), write('both.cts', PROGRAM)]
    expect(compile(names, { module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] })).toBe('')
  })

  test('moduleResolution bundler, with a browser’s types and none of Node', () => {
    const names = [write('web.ts', WEB)]
    const options = { module: 'esnext', moduleResolution: 'bundler', types: [], lib: ['ES2022', 'DOM'] }
    expect(compile(names, { ...options, customConditions: ['browser'] })).toBe('')
  })
})

describe('in a bundle without settings', () => {
  /** What a tool would do with the library: it converts, queries and reports. `WASM` is replaced by where the tool has trace_processor. */
  const program = (wasm: string) => `
    import { analyze, convert, FormatError, summarize } from 'ggml2perfetto'
    import { groupOperators } from 'ggml2perfetto/analysis'
    import { convert as convertKnown, FormatError as Same, ggtrace } from 'ggml2perfetto/core'
    import { reportHtml } from 'ggml2perfetto/report'
    import { openTrace } from 'ggml2perfetto/sql'
    import { tablesOf } from 'ggml2perfetto/tables'

    export async function use(source, wasm) {
      const log = { name: 'run', source }
      const trace = await openTrace(convert(log), { wasm })
      const [[n]] = trace.query("select count(*) from slice where category = ?", ['operator']).rows
      const analysis = await analyze(log)
      const { operators } = await summarize(log, { findings: true })
      let bytes = 0
      for await (const piece of convertKnown(log, { formats: [ggtrace] })) bytes += piece.length
      for await (const piece of tablesOf(log, { traceId: '0'.repeat(32) }, { name: 'x', version: '1' })) bytes += piece.bytes.length
      return [n === operators, n, groupOperators(analysis, 'op').length > 0, reportHtml(analysis).includes('<svg'), bytes > 0, FormatError === Same].join()
    }
    ${wasm}`
  const LOG = join(ROOT, 'examples/moe.ggtrace.gz')
  const WASM = join(ROOT, 'vendor/trace_processor.wasm')
  const IN_NODE = `
    import { readFileSync } from 'node:fs'
    import { pathToFileURL } from 'node:url'
    import { summarizeFile } from 'ggml2perfetto/node'
    const log = ${JSON.stringify(LOG)}
    const { operators } = await summarizeFile(log)
    const places = [${JSON.stringify(WASM)}].flatMap((path) => [pathToFileURL(path), readFileSync(path), new WebAssembly.Module(readFileSync(path))])
    for (const wasm of places) console.log(await use(readFileSync(log), wasm), operators)`
  /** The same with the functions of a page or a worker only. */
  const ON_THE_WEB = `
    globalThis.result = use(globalThis.log, globalThis.wasm)`
  const EXPECTED = 'true,2898,true,true,true,true'
  const isRight = (printed: string) => expect(printed).toBe(`${EXPECTED} 2898\n`.repeat(3))

  /** Runs a bundle for pages or workers where there is no \`require\`, no \`process\` and nothing to import. */
  const onTheWeb = (bundle: string) => {
    const host = write(
      'host.mjs',
      `import { readFileSync } from 'node:fs'
       globalThis.log = readFileSync(${JSON.stringify(LOG)})
       globalThis.wasm = readFileSync(${JSON.stringify(WASM)})
       const print = console.log
       delete globalThis.process
       await import(${JSON.stringify(bundle)})
       print(await globalThis.result)`,
    )
    return runNode(host)
  }

  test.each(['esm', 'cjs'] as const)('esbuild, for Node, as %s', async (format) => {
    const body =
      format === 'esm'
        ? IN_NODE
        : `${IN_NODE.replace('const { operators }', 'async function main() { const { operators }')}}\nmain()`
    const [entry, outfile] = [
      write(`esbuild-${format}.js`, program(body)),
      join(folder, `out/${format}.${format === 'esm' ? 'mjs' : 'cjs'}`),
    ]
    const { warnings } = await build({
      entryPoints: [join(folder, entry)],
      bundle: true,
      platform: 'node',
      format,
      outfile,
      logLevel: 'silent',
    })
    expect(warnings.filter(({ id }) => id !== 'empty-import-meta')).toEqual([])
    isRight(runNode(outfile))
  })

  test('esbuild, for browsers and workers', async () => {
    const [entry, outfile] = [write('esbuild-web.js', program(ON_THE_WEB)), join(folder, 'out/web.mjs')]
    const { warnings } = await build({
      entryPoints: [join(folder, entry)],
      bundle: true,
      format: 'esm',
      outfile,
      minify: true,
      logLevel: 'silent',
    })
    expect(warnings).toEqual([])
    expect(onTheWeb(outfile)).toBe(`${EXPECTED}\n`)
  })

  const testIf = hasTool('webpack') ? test : test.skip
  const webpack = (target: string, entry: string, ...more: string[]) => {
    const output = join(folder, `out/webpack-${target}`)
    const args = ['--mode', 'production', '--target', target, '--entry', `./${entry}`, '-o', output, '--no-performance']
    expect(run('webpack', [...args, ...more])).not.toMatch(/ERROR|WARNING/)
    return output
  }

  testIf('webpack, for Node', () => {
    const output = webpack('node', write('webpack-node.mjs', program(IN_NODE)))
    isRight(runNode(join(output, 'main.js')))
  })

  testIf.each(['web', 'webworker'])('webpack, for %s', (target) => {
    // Minimised as the one for Node, which takes six times as long.
    const output = webpack(target, write(`webpack-${target}.mjs`, program(ON_THE_WEB)), '--no-optimization-minimize')
    expect(readdirSync(output).filter((name) => name.endsWith('.wasm'))).toHaveLength(1)
  })

  const viteIf = hasTool('vite') ? test : test.skip
  viteIf('vite (rollup), with the package’s worker and writer', () => {
    const more = `import { TraceWriter } from 'ggml2perfetto/perfetto'
      import { convertInWorker } from 'ggml2perfetto/worker'
      globalThis.more = [typeof TraceWriter, typeof convertInWorker].join()`
    write('page.js', `${program(ON_THE_WEB)}\n${more}`)
    write('index.html', '<script type="module" src="/page.js"></script>')
    // What docs/library.md says; and no code for pages only, as it runs in Node here.
    write('vite.config.mjs', `export default { worker: { format: 'es' }, build: { modulePreload: false } }`)
    run('vite', ['build', '--outDir', 'out/vite', '--logLevel', 'warn'])
    const assets = join(folder, 'out/vite/assets')
    const [entry, ...others] = readdirSync(assets).filter((name) => /^index-.*\.js$/.test(name))
    expect([
      others,
      readdirSync(assets).filter((name) => /^(?:worker-script-.*\.js|.*\.wasm)$/.test(name)).length,
    ]).toEqual([[], 2])
    writeFileSync(join(folder, 'out/vite/package.json'), '{ "type": "module" }')
    expect(onTheWeb(join(assets, entry!))).toBe(`${EXPECTED}\n`)
  })
})

describe('in other runtimes', () => {
  const PROGRAM = `
    import { convert } from 'ggml2perfetto'
    import { inputOf, openTrace, summarizeFile } from 'ggml2perfetto/node'
    const log = ${JSON.stringify(MOE)}
    const trace = await openTrace(convert(inputOf(log)))
    const { rows } = trace.query("select count(*) from slice where category = 'operator'")
    console.log(rows[0][0] === (await summarizeFile(log)).operators, rows[0][0])`

  for (const [name, args] of [
    ['deno', ['run', '--allow-read', '--allow-env']],
    ['bun', ['run']],
    ['node22', []],
    ['node24', []],
  ] as const) {
    const testIf = hasTool(name) ? test : test.skip
    testIf(name, () => {
      expect(run(name, [...args, write(`${name}.mjs`, PROGRAM)])).toBe('true 2664\n')
    })
  }
})
