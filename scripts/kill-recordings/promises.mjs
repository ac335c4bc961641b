/** What the log of a killed recording must have, by its mode, held against the calls that the program itself printed. */
import { convert, eventsOf, Names } from '../../dist/index.js'
import { inputOf } from '../../dist/node.js'

/** The recorder's clock is computed from the processor's counter; calls are a millisecond apart. */
const CLOCK_ERROR_NS = 20_000
/** Workers of hosts.c's contexts. */
const WORKERS = 2
/** A call of `slow` takes longer outside of the recorder's hooks than inside, by so much at most. */
const HOOKS_NS = 5e6
/** From which call on operators are recorded by --tokens, and of every how manyth by --every. */
const [FROM, EVERY] = [6, 3]

/** Issues of a log that lacks nothing but its end; others are faults, unless the mode has them. */
const ISSUES = ['run-without-end', 'lost-states', 'unseen-calls']
const ISSUES_OF = {
  first: ['dropped-records', 'log-full', 'lost-definitions', 'undefined-id'],
  slow: ['fast-calls'],
  guarded: ['recorded-less'],
  since: ['log-ends-in-call', 'event-without-end', 'nothing-traced'],
}
/** A writer that is killed between two blocks may leave a header without its first word. */
const isHeader = ({ code, detail }) => code === 'damaged-bytes' && /^(8|16|24|32|40|48) bytes/.test(detail)

/** Reads a log, and converts it. `origin`: the time of its 0, in ns. */
export async function readLog(path) {
  const attributes = {}
  const [calls, issues] = [[], []]
  const [operatorsOf, nodesOf] = [new Map(), new Map()]
  const add = (counts, call, count) => counts.set(call, (counts.get(call) ?? 0) + count)
  let [origin, operators] = [0, 0]
  for await (const batch of eventsOf(inputOf(path), new Names()))
    for (const event of batch) {
      if (event.kind === 'input') origin = Number(event.originNs)
      if (event.kind === 'input' || event.kind === 'facts') Object.assign(attributes, event.attributes)
      if (event.kind === 'issue') issues.push(event)
      if (event.kind === 'token') calls.push(event)
      if (event.kind === 'graph') add(nodesOf, event.call, event.nodes)
      if (event.kind !== 'operator') continue
      operators++
      add(operatorsOf, event.call, event.fusedTo === undefined ? 1 : 2)
    }
  for await (const _ of convert(inputOf(path), { detail: 'full' }));
  const found = calls.map(({ call, startNs, endNs }) => ({
    ...{ start: origin + startNs, end: origin + endNs },
    ...{ operators: operatorsOf.get(call) ?? 0, nodes: nodesOf.get(call) ?? 0 },
  }))
  return { calls: found.sort((a, b) => a.start - b.start), operators, issues, attributes }
}

/** Each call that the program printed, with that of the log: undefined where it has none. */
function matched(calls, printed) {
  let at = 0
  return printed.map((line) => {
    while (calls[at] && calls[at].start < line.start - CLOCK_ERROR_NS) at++
    return { line, call: calls[at]?.end <= line.end + CLOCK_ERROR_NS ? calls[at] : undefined }
  })
}

/** Of the calls whose operators are all written by then, the first that has others than it must have. */
const wrong = (pairs, isRight) => pairs.slice(0, -1).find((pair, i) => pair.call && !isRight(pair, i))
const isWhole = ({ line, call }) => call.operators === line.nodes * WORKERS
const hasNone = ({ call }) => call.operators === 0

/** Whether the operators of a call are those that the mode promises. */
const OPERATORS = {
  all: isWhole,
  last: isWhole,
  slow: isWhole,
  calls: hasNone,
  since: hasNone,
  graphs: ({ line, call }) => call.operators === 0 && call.nodes === line.nodes,
  guarded: (pair) => isWhole(pair) || hasNone(pair),
  third: (pair, i) => (i >= FROM && (i - FROM) % EVERY === 0 ? isWhole(pair) : hasNone(pair)),
  some: ({ call }) => call.operators > 0,
}

/**
 * Compares a log with the calls that programs printed, and reports what is other than promised. `isComplete`: the program was not killed;
 * `of`: how many calls it makes then.
 */
export function expectCalls({ calls, issues, attributes }, printed, promise, isComplete, fault) {
  if (promise === 'unknown') return
  const own = printed.filter(
    ({ pid }) => pid === undefined || attributes.pid === undefined || `${pid}` === attributes.pid,
  )
  const pairs = matched(calls, own)
  const isThere = pairs.map(({ call }) => call !== undefined)
  const [first, last] = [isThere.indexOf(true), isThere.lastIndexOf(true)]
  const missing = isThere.filter((is) => !is).length
  const further = calls.length - (own.length - missing)
  const numbers = `${own.length} calls printed, ${calls.length} in the log, of these ${first} … ${last}`
  const codes = issues.map(({ code }) => code)

  const other = wrong(pairs, OPERATORS[promise] ?? (() => true))
  if (other)
    fault(`call ${pairs.indexOf(other)} has ${JSON.stringify(other.call)}, expected ${JSON.stringify(other.line)}`)
  if (further > (isComplete || promise === 'first' ? 0 : 1) && promise !== 'since') fault(`unknown calls: ${numbers}`)
  const hasGap = isThere.slice(first, last).includes(false)
  if (promise === 'first' ? missing > 0 && (first !== 0 || hasGap) : promise !== 'slow' && hasGap)
    fault(`a gap: ${numbers}`)
  const lacksAny = missing > 0 || wrong(pairs, isWhole)
  if (promise === 'first' && lacksAny && !codes.includes('dropped-records')) fault(`a loss is not counted: ${numbers}`)
  if (promise === 'last' && own.length > 0 && last !== own.length - 1) fault(`the last calls are missing: ${numbers}`)
  if (!['first', 'last', 'slow', 'since'].includes(promise) && missing > 0) fault(`calls are missing: ${numbers}`)
  if (promise === 'slow') expectSlow(pairs, calls, attributes, fault)

  const unexpected = issues.filter(
    (issue) => ![...ISSUES, ...(ISSUES_OF[promise] ?? [])].includes(issue.code) && !isHeader(issue),
  )
  for (const { code, detail } of unexpected) fault(`${code}: ${detail}`)
  if (isComplete && codes.includes('run-without-end')) fault('the program was not killed, but the log has no end')
}

/** All slow calls, and the number of all others. */
function expectSlow(pairs, calls, attributes, fault) {
  const limit = parseInt(attributes['recorded.slow'], 10) * 1e6 + HOOKS_NS
  const lost = pairs.filter(({ line, call }) => !call && line.end - line.start > limit)
  if (lost.length > 0) fault(`slow calls are missing: ${JSON.stringify(lost)}`)
  const more = calls.length + Number(attributes['left_out.calls'] ?? 0) - pairs.length
  if (more < 0 || more > 1) fault(`${pairs.length} calls printed, ${more} more in the log or counted`)
}
