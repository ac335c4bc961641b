/**
 * Converts a very long `.ggtrace`, in which one call is slow, with the default budget, loads the trace in trace_processor, and checks
 * it: every call is in it, the slow one in full, and its sums by role are those of the full log, exactly. Each step runs in a separate
 * process.
 *   node scripts/bench/long-run.mjs [executions, default 100000000] [budget in bytes]
 */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { convert } from 'ggml2perfetto'
import { inputOf, openTrace } from 'ggml2perfetto/node'
import { calls, longLog, perRound } from './long-log.mjs'

const LOAD_SECONDS_MAX = 60
const SLOW_NS = 30_000_000
const [what, ...args] = process.argv.slice(2)
const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`

/** Counts and times by worker and role, also of waits that are gaps between operators, and of sums; those of graphs. */
const BY_ROLE = `select worker, what, name, sum(count), sum(dur) from ggml_time_by_name group by 1, 2, 3
  union all
  select track.name, replace(category, '_sum', ''),
    coalesce(extract_arg(arg_set_id, 'debug.summed'), slice.name), sum(coalesce(extract_arg(arg_set_id, 'debug.count'), 1)), sum(dur)
  from slice join track on track_id = track.id
  where category in ('graph', 'graph_sum') group by 1, 2, 3 order by 1, 2, 3`
const ofCall = (call) => `select name, dur from ggml_operators where call = ${call} order by ts, track_id`

function figures(more) {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  console.log(JSON.stringify({ ...more, cpu: (userCPUTime + systemCPUTime) / 1e6, rss: maxRSS * 1024 }))
}

async function converting(log, trace, options) {
  const start = performance.now()
  const conversion = convert(inputOf(log), JSON.parse(options))
  const out = createWriteStream(trace)
  let next = await conversion.next()
  for (; !next.done; next = await conversion.next()) {
    if (!out.write(next.value)) await new Promise((resolve) => out.once('drain', resolve))
  }
  await new Promise((resolve) => out.end(resolve))
  figures({ seconds: (performance.now() - start) / 1e3, thinned: next.value[0].thinned })
}

async function loading(path, slowCall) {
  const start = performance.now()
  const trace = await openTrace(path)
  const seconds = (performance.now() - start) / 1e3
  const loadCpu = process.cpuUsage()
  trace.query('include perfetto module ggml.sums')
  const one = (sql) => trace.query(sql).rows[0]
  const [slices, samples] = one('select (select count(*) from slice), (select count(*) from counter)')
  const [tokens, distinct] = one(`select count(*), count(distinct extract_arg(arg_set_id, 'debug.call')) from slice
    where category = 'token'`)
  const [overlaps] =
    one(`select count(*) from (select ts < lag(ts + dur) over (partition by track_id order by ts, ts + dur) as late
    from slice where category in ('operator', 'operator_sum', 'barrier', 'barrier_sum')) where late`)
  const byRole = trace.query(BY_ROLE).rows
  const ofSlow = trace.query(ofCall(slowCall)).rows
  const problems = trace.problems()
  const loadSeconds = (loadCpu.user + loadCpu.system) / 1e6
  figures({ seconds, loadSeconds, slices, samples, tokens, distinct, overlaps, byRole, ofSlow, problems })
}

const inProcess = (...args) => {
  const { stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (!stdout) throw new Error(stderr)
  return JSON.parse(stdout)
}

const checks = []
function check(isTrue, text) {
  checks.push(isTrue)
  console.log(`${isTrue ? 'ok    ' : 'FAILED'} ${text}`)
}

async function main(executions, budget) {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-bench-'))
  const at = (name) => join(folder, name)
  const options = JSON.stringify(budget ? { budget: Number(budget) } : {})
  try {
    const rounds = Math.ceil(executions / perRound)
    const slow = { round: Math.floor(rounds * 0.6), ns: SLOW_NS }
    const slowCall = (slow.round + 1) * calls - 1
    await pipeline(longLog(1), createWriteStream(at('one.ggtrace')))
    await pipeline(longLog(rounds, slow), createWriteStream(at('long.ggtrace')))
    console.log(
      `log     ${mib(statSync(at('long.ggtrace')).size)}, ${rounds * perRound} executions, ${rounds * calls} calls`,
    )

    inProcess('convert', at('one.ggtrace'), at('one.pftrace'), '{"all":true}')
    const one = inProcess('load', at('one.pftrace'), `${calls - 1}`)
    const converted = inProcess('convert', at('long.ggtrace'), at('long.pftrace'), options)
    const { thinned } = converted
    console.log(
      `convert ${converted.seconds.toFixed(1)} s (CPU ${converted.cpu.toFixed(1)} s), peak RSS ${mib(converted.rss)}: ` +
        `${mib(statSync(at('long.pftrace')).size)} instead of some ${mib(thinned.all_bytes)}; ` +
        `${thinned.calls_in_full} of ${thinned.calls} calls in full: ${JSON.stringify(thinned.kept)}`,
    )
    const loaded = inProcess('load', at('long.pftrace'), `${slowCall}`)
    console.log(
      `load    ${loaded.seconds.toFixed(1)} s (CPU ${loaded.loadSeconds.toFixed(1)} s), peak RSS ${mib(loaded.rss)}: ` +
        `${loaded.slices} slices, ${loaded.samples} samples`,
    )
    check(loaded.seconds < LOAD_SECONDS_MAX, `it loads in less than ${LOAD_SECONDS_MAX} s`)
    check(loaded.problems.length === 0, 'no problem of import')
    check(loaded.tokens === rounds * calls && loaded.distinct === rounds * calls, 'every call is in it')
    check(loaded.overlaps === 0, 'slices of a worker do not overlap')
    check(
      JSON.stringify(loaded.ofSlow) === JSON.stringify(one.ofSlow) && one.ofSlow.length > 0,
      `the slow call (${slowCall}) is in full: ${loaded.ofSlow.length} operators`,
    )
    const expected = one.byRole.map(([track, category, name, count, ns]) => [
      track,
      category,
      name,
      count * rounds,
      ns * rounds,
    ])
    check(
      JSON.stringify(loaded.byRole) === JSON.stringify(expected),
      `${expected.length} sums are those of the full log`,
    )
    if (checks.includes(false)) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (what === 'convert') await converting(...args)
else if (what === 'load') await loading(...args)
else await main(Number(what ?? 1e8), args[0])
