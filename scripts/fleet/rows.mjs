/**
 * Rows of a synthetic fleet: runs of several models on several hosts, by builds that follow one another, with faults that are planted and
 * returned. Operators, their order and their mean times are those of a real log (the template); times vary as those of real runs do.
 */
import { randomOf } from '../random.mjs'

/** Numbers of one seed, and distributions of it. */
export function random(seed) {
  const next = randomOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  // Student's t with five degrees of freedom: run times have heavier tails than the normal distribution.
  const heavy = () => normal() / Math.sqrt(Array.from({ length: 5 }, normal).reduce((sum, x) => sum + x * x, 0) / 5)
  const hex = (digits) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join('')
  return {
    next,
    normal,
    heavy,
    hex,
    whole: (n) => Math.floor(next() * n),
    pick: (of) => of[Math.floor(next() * of.length)],
  }
}

/** Standard deviations of logarithms of times. */
const NOISE = { host: 0.03, run: 0.012, role: 0.01, call: 0.015, operator: 0.05 }
const DAY_NS = 86_400_000_000_000
const FIRST_DAY_NS = Date.UTC(2026, 0, 5) * 1e6
const CALL_OVERHEAD_NS = 6000
const BARRIER_NS = 300

const SETUPS = [
  { model: 'Llama-3.2-1B-Instruct', architecture: 'llama', quant: 'Q4_K', cpu: 'AMD EPYC 7B13', workers: 2, pace: 1 },
  { model: 'Qwen3-4B', architecture: 'qwen3', quant: 'Q8_0', cpu: 'Intel Xeon Platinum 8481C', workers: 2, pace: 2.3 },
  { model: 'gemma-3-1b-it', architecture: 'gemma3', quant: 'Q4_0', cpu: 'Ampere Altra', workers: 2, pace: 1.4 },
]

/** What is planted, by default little; `runs` of all setups together. */
const DEFAULTS = {
  seed: 1,
  runs: 240,
  hosts: 12,
  builds: 8,
  setups: 2,
  regressions: 1,
  outliers: 3,
  slowHosts: 0,
  decodeCalls: 4,
  /** Row of operators in each run. */
  withOperators: true,
}

/**
 * The planted faults, and a generator of the runs: `{ day, traceId, tables }`, each table an array of rows.
 * `template`: `{ prefill, decode }`, each the operators of one call: rows of the table operator.
 */
export function fleet(template, options = {}) {
  const of = { ...DEFAULTS, ...options }
  const rng = random(of.seed)
  const setups = SETUPS.slice(0, of.setups)
  const builds = Array.from({ length: of.builds }, (_, i) => `0.9.${i + 4} (${rng.hex(7)})`)
  const hosts = Array.from({ length: of.hosts }, (_, i) => ({
    name: `node-${String(i + 1).padStart(2, '0')}`,
    setup: setups[i % setups.length],
    pace: Math.exp(NOISE.host * rng.normal()),
  }))
  const slowHosts = hosts.slice(0, of.slowHosts)
  for (const host of slowHosts) host.pace = 1.25 + 0.2 * rng.next()
  const regressions = planRegressions(of.regressions, template, setups, builds, rng)
  const outlierRuns = new Set()
  while (outlierRuns.size < Math.min(of.outliers, of.runs)) outlierRuns.add(rng.whole(of.runs))
  const truth = { regressions, slowHosts: slowHosts.map(({ name }) => name), outliers: [], builds }
  return {
    truth,
    *runs() {
      for (let i = 0; i < of.runs; i++) {
        const run = runOf({ i, of, template, rng, hosts, builds, regressions, isOutlier: outlierRuns.has(i) })
        if (outlierRuns.has(i)) truth.outliers.push(run.traceId)
        yield run
      }
    },
  }
}

/** A regression: one role takes longer from one build on, so much that calls of the phase take 10 to 22 % longer. */
function planRegressions(count, template, setups, builds, rng) {
  const plans = setups.flatMap((setup) => ['decode', 'prefill'].map((phase) => ({ setup, phase })))
  return Array.from({ length: Math.min(count, plans.length) }, () => {
    const { setup, phase } = plans.splice(rng.whole(plans.length), 1)[0]
    const shares = sharesOf(template[phase]).filter(({ share }) => share >= 0.08)
    const { role, share } = rng.pick(shares)
    const total = 0.1 + 0.12 * rng.next()
    const at = 1 + rng.whole(builds.length - 1)
    return { model: setup.model, phase, role, build: builds[at], at, total, factor: 1 + total / share }
  })
}

function sharesOf(operators) {
  const byRole = new Map()
  let sum = 0
  for (const { role, dur_ns } of operators) {
    byRole.set(role, (byRole.get(role) ?? 0) + dur_ns)
    sum += dur_ns
  }
  return [...byRole].map(([role, ns]) => ({ role, share: ns / sum }))
}

function runOf({ i, of, template, rng, hosts, builds, regressions, isOutlier }) {
  const at = Math.floor((i * of.builds) / of.runs)
  const host = rng.pick(hosts)
  const traceId = rng.hex(32)
  const cause = isOutlier ? rng.pick(['preempted', 'throttled']) : undefined
  const pace = {
    all:
      host.setup.pace * host.pace * Math.exp(NOISE.run * rng.heavy()) * (cause === 'throttled' ? 1.35 + rng.next() : 1),
    stolen: cause === 'preempted' ? 0.3 + 0.5 * rng.next() : 0.002 * rng.next(),
    roles: new Map(),
  }
  const planted = regressions.filter((one) => one.model === host.setup.model && one.at <= at)
  const roleFactor = (phase, role) => {
    const key = `${phase} ${role}`
    if (!pace.roles.has(key)) {
      const factor = planted
        .filter((one) => one.phase === phase && one.role === role)
        .reduce((f, one) => f * one.factor, 1)
      pace.roles.set(key, factor * Math.exp(NOISE.role * rng.normal()))
    }
    return pace.roles.get(key)
  }
  const tables = { call: [], operator: [], state: [], finding: [] }
  let now = 0
  const promptTokens = template.prefill.tokens
  for (let call = 0; call <= of.decodeCalls; call++) {
    const phase = call === 0 ? 'prefill' : 'decode'
    const end = callOf({ traceId, call, phase, now, template, pace, roleFactor, rng, tables, tokens: promptTokens })
    now = end + CALL_OVERHEAD_NS
  }
  const facts = { traceId, host, build: builds[at], of, i, cause, promptTokens }
  tables.trace = [traceRow(facts, tables, rng)]
  if (cause !== undefined) tables.finding.push(findingRow(traceId, cause, tables))
  if (!of.withOperators) tables.operator = []
  tables.operator_sum = sumsOf(tables)
  const day = new Date(tables.trace[0].origin_unix_ns / 1e6).toISOString().slice(0, 10)
  return { day, traceId, tables }
}

/** Adds the rows of one call; returns its end. */
function callOf({ traceId, call, phase, now, template, pace, roleFactor, rng, tables, tokens }) {
  const operators = template[phase]
  const callPace = pace.all * Math.exp(NOISE.call * rng.normal())
  const workers = Math.max(...operators.map(({ worker }) => worker)) + 1
  let at = now
  for (let first = 0; first < operators.length; ) {
    // Rows of one node: one of each worker.
    let next = first + 1
    while (next < operators.length && operators[next].node === operators[first].node) next++
    const rows = operators.slice(first, next).map((row) => {
      const factor = callPace * roleFactor(phase, row.role) * Math.exp(NOISE.operator * rng.normal())
      return {
        ...row,
        trace_id: traceId,
        call,
        graph: call,
        ts_ns: at,
        dur_ns: Math.max(1, Math.round(row.dur_ns * factor)),
      }
    })
    const longest = Math.max(...rows.map(({ dur_ns }) => dur_ns)) + BARRIER_NS
    for (const row of rows) {
      row.wait_ns = longest - row.dur_ns
      tables.operator.push(row)
    }
    at += longest
    first = next
  }
  const ran = at - now
  // What is taken from one worker makes all others wait.
  const stolen = Math.round(ran * pace.stolen)
  if (stolen > 0) tables.state.push(stateRow(traceId, workers - 1, now + Math.round(ran / 2), stolen, 'runnable'))
  const dur_ns = ran + stolen
  for (let worker = 0; worker < workers; worker++) tables.state.push(stateRow(traceId, worker, now, ran, 'running'))
  const isFirst = call <= 1
  tables.call.push({
    trace_id: traceId,
    call,
    ts_ns: now,
    dur_ns,
    phase,
    n_tokens: phase === 'prefill' ? tokens : 1,
    sequences: 1,
    sequence: 0,
    position: phase === 'prefill' ? 0 : tokens + call - 1,
    tpot_ns: isFirst ? null : dur_ns + CALL_OVERHEAD_NS,
    function: 'llama_decode',
    result: 0,
    context: null,
    tid: 1000,
    is_cut: false,
    inferred: null,
  })
  return now + dur_ns
}

/** The rows of operator_sum, from those of the tables operator and call. */
function sumsOf({ operator, call }) {
  const phases = new Map(call.map(({ call, phase }) => [call, phase]))
  const sums = new Map()
  const added = ['dur_ns', 'wait_ns', 'inner_wait_ns', 'flop', 'bytes_read', 'bytes_written']
  for (const row of operator) {
    const { trace_id, role, op, type, backend } = row
    const labels = { trace_id, phase: phases.get(row.call) ?? null, role, op, type, backend }
    const key = JSON.stringify(Object.values(labels))
    const nothing = Object.fromEntries(added.map((name) => [name, null]))
    if (!sums.has(key)) sums.set(key, { ...labels, operators: 0, ...nothing, longest_ns: 0, bytes_are_max: false })
    const sum = sums.get(key)
    sum.operators++
    for (const name of added) if ((row[name] ?? null) !== null) sum[name] += row[name]
    sum.longest_ns = Math.max(sum.longest_ns, row.dur_ns)
    sum.bytes_are_max ||= row.bytes_are_max ?? false
  }
  return [...sums.values()]
}

const stateRow = (trace_id, worker, ts_ns, dur_ns, state) => ({
  trace_id,
  worker,
  tid: 1000 + worker,
  ts_ns,
  dur_ns,
  state,
  cpu: worker,
  wait: null,
  taken_by: state === 'runnable' ? 'cc1plus' : null,
  taken_by_ns: state === 'runnable' ? dur_ns : null,
  inferred: null,
})

function traceRow({ traceId, host, build, of, i, promptTokens }, { call, operator }, rng) {
  const [prefill, ...decodes] = call
  const last = call.at(-1)
  const sum = (rows, column) => rows.reduce((total, row) => total + row[column], 0)
  const decodeNs = sum(decodes, 'dur_ns') + decodes.length * CALL_OVERHEAD_NS
  const { model, architecture, quant, cpu, workers } = host.setup
  return {
    trace_id: traceId,
    log: `logs/${host.name}/${traceId.slice(0, 8)}.ggtrace`,
    logs: 1,
    format: 'ggtrace',
    exporter: '0.1.0',
    origin_ns: null,
    clock: 'MONOTONIC',
    origin_unix_ns: FIRST_DAY_NS + Math.floor((i * of.builds * DAY_NS) / of.runs / 1000) * 1000 + rng.whole(1000),
    clock_error_ns: null,
    first_ts_ns: 0,
    dur_ns: last.ts_ns + last.dur_ns,
    host: host.name,
    cpu,
    cpus: workers,
    kernel: '6.8.0-45-generic',
    build,
    command: `llama-cli -m ${model}.gguf -n ${decodes.length}`,
    model,
    architecture,
    quant,
    parameters: null,
    layers: null,
    backends: 'CPU',
    workers,
    threads: workers,
    level: 'op',
    calls: call.length,
    failed_calls: 0,
    prefill_calls: 1,
    decode_calls: decodes.length,
    prompt_tokens: promptTokens,
    decode_tokens: decodes.length,
    ttft_ns: prefill.dur_ns,
    tpot_ns: decodeNs / decodes.length,
    prefill_tok_per_s: (promptTokens * 1e9) / prefill.dur_ns,
    decode_tok_per_s: (decodes.length * 1e9) / decodeNs,
    operators: of.withOperators ? operator.length : 0,
    operator_ns: of.withOperators ? sum(operator, 'dur_ns') : 0,
    wait_ns: of.withOperators ? sum(operator, 'wait_ns') : 0,
    requests: 0,
    issues: 0,
    lost: 0,
    issue_counts: '{}',
  }
}

function findingRow(trace_id, cause, { state }) {
  const time_ns = state.filter((row) => row.state === 'runnable').reduce((total, { dur_ns }) => total + dur_ns, 0)
  const sentence =
    cause === 'preempted'
      ? 'cc1plus took the CPU from a worker, and all workers waited.'
      : 'All operators took longer than in other runs.'
  return { trace_id, rank: 0, rule: cause, sentence, time_ns, confidence: 'high', evidence: '{}', advice: null }
}
