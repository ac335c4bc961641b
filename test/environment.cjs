const { existsSync, readdirSync, readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const vm = require('node:vm')
const { MessageChannel, Worker } = require('node:worker_threads')
const { TestEnvironment } = require('jest-environment-node')
const { cacheFolder } = require('./cache.cjs')

/**
 * OpenMP's workers sleep at barriers. By default they spin, each on its CPU, which makes a run on a busy machine some ten times
 * slower. ggml's own workers spin all the same.
 */
process.env['OMP_WAIT_POLICY'] ??= 'passive'

/** Not the user's: peaks of this machine that are kept there would be in the figures of its logs. */
const cache = cacheFolder('cache')
process.env['XDG_CACHE_HOME'] = cache
const hasPeaks = () =>
  existsSync(`${cache}/ggml2perfetto`) &&
  readdirSync(`${cache}/ggml2perfetto`).some((name) => /^(peaks|kernels)-/.test(name))

/** What one test file had V8 compile of trace_processor, the next one need not: V8 shares the code while some module of it lives. */
const vendored = join(__dirname, '../vendor/trace_processor.wasm')
const traceProcessor = existsSync(vendored) ? new WebAssembly.Module(readFileSync(vendored)) : undefined

/** Memory of trace_processor that is ready for a trace (lib/query/trace-processor.ts), which lib makes when it opens the second one. */
let image

let modules

/** What lib keeps of trace_processor, by modules of lib. */
function keptBy(lib) {
  modules ??= new Map(JSON.parse(readFileSync(`${process.env['LIB_BUNDLE']}.json`, 'utf8')))
  const { compiled } = lib[modules.get('lib/query/wasm.ts').name]
  const { prepared } = lib[modules.get('lib/query/trace-processor.ts').name]
  return { compiled, prepared }
}

/** Gives lib what another test file had it make of trace_processor: a fifth of a second of work in each. Tests of lib/query begin as programs do. */
function giveKept(lib, testPath) {
  if (!traceProcessor || testPath.includes('/test/query/')) return
  const { compiled, prepared } = keptBy(lib)
  compiled.set(pathToFileURL(vendored).href, Promise.resolve(traceProcessor))
  if (image) prepared.set(traceProcessor, image)
}

/** Keeps a copy that nothing of the test file belongs to. */
function takeKept(lib) {
  const made = traceProcessor && !image && keptBy(lib).prepared.get(traceProcessor)
  if (made) image = { ...made, pages: new Map(made.pages) }
}

/**
 * What one test file had V8 compile of lib and of CommonJS modules, the next one need not: a script may run in several contexts, and its
 * functions are compiled once for all of them. Modules are compiled for one context.
 */
const scripts = new Map()

function scriptOf(name, code, options) {
  const script = scripts.get(name) ?? new vm.Script(code(), options)
  scripts.set(name, script)
  return script
}

/** lib in the file that lib-bundle.mjs has made. It has the `process` of the test file. */
function libFor({ context, global }, testPath) {
  const filename = process.env['LIB_BUNDLE']
  const options = { filename, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }
  // V8 counts in functions that it compiles after it was asked to (line/work.ts), and knows a text that it has compiled.
  const [name, end] = global.countsWork ? [`${filename} of ${Math.random()}`, `// ${Math.random()}`] : [filename, '']
  const script = scriptOf(name, () => readFileSync(filename, 'utf8') + end, options)
  const ofNode = createRequire(filename)
  const required = (id) => (id === 'node:process' ? global.process : ofNode(id))
  const lib = script.runInContext(context)(required, pathToFileURL(filename).href, {})
  giveKept(lib, testPath)
  return lib
}

const { compileFunction } = vm

/** As vm.compileFunction, for modules of packages: by a script, unless the module imports others while it runs. */
vm.compileFunction = (code, parameters, options) => {
  const { filename, parsingContext } = options
  if (!filename.includes('/node_modules/') || code.includes('import('))
    return compileFunction(code, parameters, options)
  const names = parameters.join()
  const whole = () => `(function (${names}) {${code}\n})`
  return scriptOf(`${filename}(${names})`, whole, { filename }).runInContext(parsingContext)
}

/**
 * The thread in which the CLI runs (cli/helpers.ts), one for the test files of a worker of Jest: what it has compiled for one of them, it need
 * not for the next one, which is four fifths of the work of a short command.
 */
const cli = {
  thread: undefined,
  start() {
    if (this.thread) return this.thread
    const done = new Int32Array(new SharedArrayBuffer(4))
    const { port1: port, port2 } = new MessageChannel()
    const worker = new Worker(join(__dirname, 'cli/cli-thread.mjs'), {
      workerData: { done, port: port2, main: join(__dirname, '../dist/cli/main.js') },
      transferList: [port2],
    })
    worker.unref()
    this.thread = { done, port, worker }
    return this.thread
  },
  /** Ends a thread that hangs. */
  end() {
    void this.thread?.worker.terminate()
    this.thread = undefined
  },
}

/** Keeps the tests of a group that `npm run test:long` has. */
function keepLong(group) {
  for (const child of group.children) if (child.type === 'describeBlock') keepLong(child)
  group.children = group.children.filter((child) => child.type === 'describeBlock' || child.isLong)
  group.tests = group.tests.filter((test) => test.isLong)
}

/**
 * Jest's environment for Node, whose global object is an ordinary one. By default each look at a global (`Math`, `Number`) goes
 * through interceptors of node:vm and a Proxy, which makes hot loops up to fifty times slower than they are in Node.
 */
class PlainEnvironment extends TestEnvironment {
  traceProcessor = traceProcessor

  constructor(...args) {
    const [{ projectConfig }, { testPath }] = args
    const { createContext } = vm
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY)
    try {
      super(...args)
    } finally {
      vm.createContext = createContext
    }
    Object.defineProperty(this.global, Symbol.for('lib'), { get: () => (this.lib ??= libFor(this, testPath)) })
    Object.defineProperty(this.global, Symbol.for('cli'), { get: () => cli })
    const isPart = projectConfig.globals.isLong === true && !testPath.endsWith('.long.test.ts')
    if (isPart) this.handleTestEvent = this.leaveOut
  }

  /** `npm run test:long` has of a test file that is in `npm test`, too, what that leaves out (long.ts). */
  leaveOut({ name }, { currentDescribeBlock, rootDescribeBlock }) {
    if (name === 'add_test') currentDescribeBlock.tests.at(-1).isLong = this.global.isDeclaredLong
    if (name === 'run_start') keepLong(rootDescribeBlock)
  }

  /** Peaks in the common cache would be in the figures of other test files: who measures sets XDG_CACHE_HOME. */
  async teardown() {
    if (this.lib) takeKept(this.lib)
    this.lib = undefined
    await super.teardown()
    if (hasPeaks())
      throw new Error(`${cache} contains peaks or kernels that this test file, or one beside it, measured`)
  }
}

module.exports = PlainEnvironment
