/**
 * Does `record --sweep` recommend a number of threads as fast as the best one? On all CPUs, under a quota of one, with affinity to one, and with another
 * program on one of the CPUs, where it should decline. Prints a line for each: the answer, the speed of each number of threads, measured without recorder
 * by turns, and how far the recommended one is from the best. Exits 1 if that is more than 3 %, or if it recommends one although it was disturbed.
 *   node scripts/sweep-trials.mjs [all|quota|one|hog …] [--decode 1500] [--rounds 3]
 * The quota needs root, and control groups whose controller `cpu` can be used from the own group.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cachedModel } from '../test/llama/gguf.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { decode: { type: 'string', default: '1500' }, rounds: { type: 'string', default: '3' } },
})
const [decode, rounds] = [Number(values.decode), Number(values.rounds)]
const WITHIN = 0.03
const THREADS = ['1', '2']

const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-sweep-'))
const libs = join(root, 'vendor/llama/lib')
const program = join(folder, 'decode')
const linked = [`-L${libs}`, `-Wl,-rpath,${libs}`, '-lllama', '-lggml', '-lggml-base', '-lpthread']
const source = ['-std=gnu11', '-O2', `-I${join(root, 'vendor/llama/include')}`, join(root, 'test/llama/run.c')]
execFileSync('cc', [...source, '-o', program, ...linked])
// One layer: threads on one CPU, which spin at each barrier, need a turn of the scheduler there.
const nano = { layers: 1, width: 64, feedForward: 96, heads: 2, kvHeads: 1, vocabulary: 260, context: 2048 }
const paths = { tiny: (await cachedModel('tinyDense')).path, nano: (await cachedModel(nano)).path }
const command = (threads, tokens, model = paths.tiny) =>
  `${program} --lib ${libs} --model ${model} --threadpool --threads ${threads} --prompt 16 --decode ${tokens}`.split(
    ' ',
  )

const hogIn = (before) =>
  spawn(before[0] ?? 'sh', [...before.slice(1), ...(before.length > 0 ? ['sh'] : []), '-c', 'while :; do :; done'], {
    stdio: 'ignore',
  })

/** A group below the own one, with the time of one CPU. */
function quotaOfOne() {
  const isSecond = existsSync('/sys/fs/cgroup/cgroup.controllers')
  const line = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .find((text) => (isSecond ? text.startsWith('0::') : /^\d+:([^:]*,)?cpu(,[^:]*)?:/.test(text)))
  const at = join('/sys/fs/cgroup', isSecond ? '' : 'cpu', line.split(':')[2], `sweep-${process.pid}`)
  mkdirSync(at)
  if (isSecond) writeFileSync(join(at, 'cpu.max'), '100000 100000')
  else writeFileSync(join(at, 'cpu.cfs_quota_us'), '100000')
  return { before: ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', at], end: () => rmdirSync(at) }
}

const SETTINGS = {
  all: () => ({ before: [], end: () => undefined }),
  one: () => ({ before: ['taskset', '-c', '0'], end: () => undefined, path: paths.nano, tokens: 40 }),
  quota: quotaOfOne,
  hog: () => {
    const hog = hogIn(['taskset', '-c', '0'])
    return { before: [], end: () => hog.kill('SIGKILL'), isDisturbed: true }
  },
}

/** Tokens per second without recorder: the fastest of the rounds, without what a start takes. */
function speeds(before, path, tokens) {
  const seconds = (threads, decoded) => {
    const [first, ...args] = [...before, ...command(threads, decoded, path)]
    const startNs = process.hrtime.bigint()
    if (spawnSync(first, args, { stdio: 'ignore' }).status !== 0) throw new Error(`${first} failed`)
    return Number(process.hrtime.bigint() - startNs) / 1e9
  }
  const found = Object.fromEntries(THREADS.map((threads) => [threads, 0]))
  for (let round = 0; round < rounds; round++) {
    for (const threads of THREADS) {
      // One thread of the smallest model is 1 000 times as fast as two on one CPU.
      const count = path === paths.nano && threads === '1' ? 40 * tokens : tokens
      const speed = (count - 1) / (seconds(threads, count) - seconds(threads, 1))
      found[threads] = Math.max(found[threads], speed)
    }
  }
  return found
}

let wrong = 0
for (const name of positionals.length > 0 ? positionals : Object.keys(SETTINGS)) {
  const { before, end, isDisturbed = false, path, tokens = decode } = SETTINGS[name]()
  try {
    const cli = [process.execPath, join(root, 'dist/ggml2perfetto.js'), 'record', '--sweep', `t=${THREADS.join()}`]
    const options = ['--rounds', `${rounds}`, '-o', join(folder, name), '--']
    const [first, ...args] = [...before, ...cli, ...options, ...command('{t}', tokens, path)]
    const { stdout, stderr, status } = spawnSync(first, args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    const answer = stdout.split('\n').find((line) => /^decode: |^nothing is/.test(line))
    const value = /^decode: t=(\d+) is recommended/.exec(answer)?.[1]
    const measured = speeds(before, path, tokens)
    const loss = value && 1 - measured[value] / Math.max(...Object.values(measured))
    const isWrong = isDisturbed ? value !== undefined : value === undefined || loss > WITHIN
    if (isWrong) wrong++
    const figures = THREADS.map((threads) => `t=${threads} ${measured[threads].toFixed(0)} tok/s`).join(', ')
    const far = value === undefined ? '' : `; ${(100 * loss).toFixed(1)} % from the best`
    console.log(
      `${name}: ${answer}\n  measured: ${figures}${far}${isWrong ? ': WRONG' : ''}\n${stdout.replace(/^/gm, '    ')}`,
    )
  } finally {
    await sleep(100)
    end()
  }
}
rmSync(folder, { recursive: true })
process.exitCode = wrong > 0 ? 1 : 0
