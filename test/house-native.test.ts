import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, test } from '@jest/globals'
import { RECORDER_ENVIRONMENT } from '../lib/node/record/environment.ts'
import { ROOT } from './root.ts'
import { circlesIn, filesIn } from './sources.ts'

/** The house rules of the C sources (house.test.ts has those of TypeScript). */

const LIB = filesIn('lib')
const NATIVE = [...filesIn('native', '.c'), ...filesIn('native', '.h')].filter((path) => !path.includes('/build/'))

/** Folder of a file of native/, such as `recorder`; and the module that a `.c` and its `.h` are: `recorder/calls`. */
const folderOf = (path: string) => path.split('/')[1]!
const moduleOf = (path: string) => path.replace(/^native\//, '').replace(/(-inside)?\.[ch]$/, '')
const included = (path: string) =>
  [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^#include "(.+)"/gm)].map(([, name]) =>
    name!.includes('/') ? `native/${name}` : posix.join(posix.dirname(path), name!),
  )

test('folders include what stands below them only', () => {
  const below: Readonly<Record<string, readonly string[]>> = {
    log: [],
    common: ['log'],
    nvtx: ['common', 'log'],
    recorder: ['nvtx', 'common', 'log'],
    peaks: [],
    test: ['log', 'common', 'recorder', 'nvtx'],
  }
  const wrong = NATIVE.flatMap((path) =>
    included(path)
      .filter((other) => folderOf(other) !== folderOf(path) && !below[folderOf(path)]?.includes(folderOf(other)))
      .map((other) => `${path} includes ${other}`),
  )
  expect(wrong).toEqual([])
})

/** The modules that a file includes, through headers without a `.c` of their own, too. A private header is its module's. */
const modulesOf = (path: string): string[] =>
  included(path).flatMap((other) =>
    NATIVE.includes(`native/${moduleOf(other)}.c`) ? [moduleOf(other)] : modulesOf(other),
  )

test('no files include each other in a circle', () => {
  const filesOf = (module: string) =>
    [`native/${module}.c`, `native/${module}.h`].filter((path) => NATIVE.includes(path))
  expect(circlesIn(NATIVE.map(moduleOf), (module) => filesOf(module).flatMap(modulesOf))).toEqual([])
})

test('no files of the log call each other in a circle', () => {
  const files = NATIVE.filter((path) => /^native\/log\/.*\.c$/.test(path)).map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8')
    const defined = [...text.matchAll(/^(?!static)\w[\w *]*\b(ggtrace_\w+)\([^;]*?\) \{$/gm)].map(([, name]) => name!)
    return { path, defined, called: new Set([...text.matchAll(/\b(ggtrace_\w+)\(/g)].map(([, name]) => name!)) }
  })
  const calledBy = (path: string) => {
    const { called } = files.find((file) => file.path === path)!
    return files.filter(({ defined }) => defined.some((name) => called.has(name))).map((file) => file.path)
  }
  const paths = files.map(({ path }) => path)
  expect(circlesIn(paths, calledBy)).toEqual([])
})

test('the environment is one table on both sides', () => {
  const header = readFileSync(join(ROOT, 'native/common/environment.h'), 'utf8')
  const inC = [...header.matchAll(/^#define ENV_\w+ "(GGML2PERFETTO_\w+)"/gm)].map(([, name]) => name!)
  expect(Object.values(RECORDER_ENVIRONMENT).sort()).toEqual(inC.sort())
  const strays = [...NATIVE, ...LIB]
    .filter((path) => !path.startsWith('native/test/') && !/\/environment\.(h|ts)$/.test(path))
    .filter((path) => /["']GGML2PERFETTO_\w+["']/.test(readFileSync(join(ROOT, path), 'utf8')))
  expect(strays).toEqual([])
})

/**
 * Variables of a thread that a hook sets around the function that it calls, and resets when it returns. The function may never return: so each is
 * reset by a function that frames_begin gets (recorder/frames.h).
 */
const FRAMED: Readonly<Record<string, readonly string[]>> = {
  'native/recorder/calls.c': ['current', 'is_inside', 'begun'],
  'native/recorder/copies.c': ['is_inside'],
  'native/recorder/hooks-memory.c': ['has_state', 'is_clearing'],
  'native/recorder/hooks.c': ['is_scheduling'],
  'native/recorder/loading.c': ['inside'],
  'native/recorder/runs.c': ['splits', 'current'],
  'native/recorder/sampling.c': ['is_accepting'],
}

/** All others, and why no function that a hook calls can leave them behind. */
const KEPT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'native/recorder/affinity.c': { last: 'what was written last' },
  'native/recorder/callees.c': { latest: 'a cache' },
  'native/recorder/calls.c': {
    has_encoded: 'each call begins with false',
    is_left_out: 'each call sets it first',
    has_encoded_audio: 'the next graph takes it',
  },
  'native/recorder/counters.c': { group: 'the counters of the thread' },
  'native/recorder/cuda-devices.c': { device: 'the device of the thread', latest: 'a cache' },
  'native/recorder/cuda-events.c': { here: 'cuda_leave resets it with the run' },
  'native/recorder/cuda-launched.c': { here: 'what is not written yet', known: 'a cache' },
  'native/recorder/cuda-work.c': {
    loop: 'cuda_leave resets it with the run',
    is_capturing: 'cuda_leave resets it with the run',
    captured: 'what was captured last',
    instantiated: 'what was instantiated last',
  },
  'native/recorder/cuda.c': {
    product_stream: 'the stream of the handle',
    capture_start: 'the next capture sets it first',
  },
  'native/recorder/functions.c': { kept: 'a cache' },
  'native/recorder/guard.c': {
    is_compared: 'guard_leave resets it with the call',
    is_spared: 'each call sets it first',
  },
  'native/recorder/hooks.c': { allocated: 'the next graph takes it' },
  'native/recorder/loading.c': {
    copied: 'a count that only grows',
    loose: 'the next stage that reads weights resets it',
  },
  'native/recorder/numa-policies.c': { last_mode: 'a cache', last_name: 'a cache', last_hash: 'a cache' },
  'native/recorder/openmp.c': { is_single: 'the next barrier takes it' },
  'native/recorder/operators.c': { starts_outside_graphs: 'a count' },
  'native/recorder/runs.c': { asked: 'each question sets it first' },
  'native/recorder/sampling.c': { last_read: 'what was read last', has_applied: 'the next acceptance takes it' },
  'native/recorder/vulkan-labels.c': { labels: 'another run resets it' },
  'native/recorder/vulkan-names.c': { compiled: 'what is not written yet' },
  'native/recorder/vulkan-work.c': { latest: 'a cache' },
  'native/recorder/vulkan.c': { spinning: 'another fence resets it' },
  'native/recorder/worker.c': { this_worker: 'operators_graph_left leaves the graph with the run' },
  'native/recorder/worker.h': { this_worker: 'the declaration' },
  'native/recorder/frames.c': { frames: 'the frames themselves' },
  'native/recorder/frames.h': { frames: 'the declaration' },
  'native/log/ggtrace-log.c': { ggtrace_thread_writers: 'the writers of the thread' },
  'native/log/ggtrace.h': { ggtrace_thread_writers: 'the declaration' },
  'native/nvtx/listen.c': { thread: 'a function of NVTX calls nothing of the program' },
}

/** The variables that a C source declares with __thread. */
function threadLocals(text: string): string[] {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .split(/\b__thread\b/)
    .slice(1)
    .flatMap((rest) => {
      let before = ''
      let declarators = rest
      while (declarators !== before) [before, declarators] = [declarators, declarators.replace(/\{[^{}]*\}/g, '')] // bodies of structs
      return declarators
        .slice(0, declarators.indexOf(';'))
        .replace(/__attribute__\(\(.*\)\)|=[^,]*/g, '')
        .split(',')
        .map((name) => /(\w+)(?:\[\w*\])*\s*$/.exec(name)![1]!)
    })
}

test('what a thread keeps while a hook calls a function is reset where nothing returns from it', () => {
  const declared = NATIVE.filter((path) => !path.startsWith('native/test/')).flatMap((path) =>
    threadLocals(readFileSync(join(ROOT, path), 'utf8')).map((name) => `${path}: ${name}`),
  )
  const excused = Object.entries(KEPT).flatMap(([path, names]) => Object.keys(names).map((name) => `${path}: ${name}`))
  const framed = Object.entries(FRAMED).flatMap(([path, names]) => names.map((name) => `${path}: ${name}`))
  expect([...excused, ...framed].sort()).toEqual([...new Set(declared)].sort())
  const unframed = Object.keys(FRAMED).filter(
    (path) => !/\bframes_begin\(/.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  expect(unframed).toEqual([])
})
