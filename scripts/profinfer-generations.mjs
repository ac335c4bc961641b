/**
 * One run of llama.cpp in every generation of ProfInfer's logs: what its other loggers would have written for
 * the rows of a CSV. Real logs of these are not available; the forms follow the public sources of the loggers.
 */

const FUNCTIONS = {
  10: 'llama_decode',
  20: 'ggml_compute_forward',
  30: 'ggml_backend_graph_compute_async',
  40: 'ggml_acc_compute_forward',
}

const functionOf = (type) => FUNCTIONS[type - (type % 10)]
const edgeOf = (type) => (type % 10 === 0 ? 'start' : 'end')
const number = (cell) => (cell ? `${BigInt(cell)}` : '0')

/** The rows of a CSV without quotes, as objects by column. */
export function rowsOf(csv) {
  const [header, ...lines] = csv.trimEnd().split('\n')
  const columns = header.split(',')
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [columns[i], cell])))
}

/** The older text. `comma`: cells end in a comma, as in its last version; in the first, commas are between cells. */
export function textOf(rows, { comma = true } = {}) {
  const hasStruct = 'parm_addr' in rows[0]
  const lines = rows.map((row) => {
    const type = Number(row.type)
    const cells = [`ts:${row.ts}`, `func:${functionOf(type)}`, `pos:${edgeOf(type)}`, `pid:${row.pid}`]
    cells.push(`op:${number(row.op)}`, `cpu:${row.cpu}`, `name:${row.name}`)
    if (hasStruct) {
      for (const name of ['parm_addr', 'first_src_addr', 'second_src_addr']) cells.push(`${name}:${number(row[name])}`)
      for (let i = 0; i < 4; i++) {
        cells.push(`ne${i}:${number(row[`ne${i}`])}`)
        for (const source of [0, 1]) cells.push(`src${source + 1}_ne${i}:${number(row[`src${source}_ne${i}`])}`)
      }
    }
    if (type === 30) cells.push(`guid:${row.guid}`)
    if ('pmc_0' in row) cells.push(`pmc:${row.pmc_0}`)
    return cells.join(',') + (comma ? ',' : '')
  })
  return lines.join('\n')
}

const OPENHARMONY = ['Function', 'PID', 'TID', 'CPU', 'Timestamp', 'Type', 'OP', 'Name', 'GUID']
const STRUCTURE = ['Tensor', 'Src0', 'Src1', 'Src2']
const SHAPES = ['', 'src0_', 'src1_', 'src2_'].flatMap((prefix) => [0, 1, 2, 3].map((i) => `${prefix}ne${i}`))

/** Thread ids in the column PID and the process id in TID, as that logger writes them, or, with `straight`, in the right columns. */
export function openharmonyOf(rows, { tgid, straight = false, struct = true }) {
  const lines = rows.map((row) => {
    const type = Number(row.type)
    const ids = straight ? [tgid, row.pid] : [row.pid, tgid]
    const cells = [`${functionOf(type)} (${edgeOf(type)})`, ...ids, row.cpu, row.ts, type]
    cells.push(number(row.op), row.name, guidBytes(type === 30 ? row.guid : ''))
    if (!struct) return [...cells, ''].join(',')
    const addresses = [row.parm_addr, row.first_src_addr, row.second_src_addr, 0]
    cells.push(...addresses.map((address) => `0x${BigInt(address || 0).toString(16)}`))
    cells.push(...SHAPES.map((name) => (name.startsWith('src2') ? '0' : number(row[name]))))
    return cells.join(',')
  })
  return [[...OPENHARMONY, ...STRUCTURE, ...SHAPES].join(','), ...lines, ''].join('\n')
}

function guidBytes(guid) {
  const hex = guid.replaceAll('-', '').padEnd(32, '0')
  return Array.from({ length: 16 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)).join('|')
}

/**
 * A possible schedule for the run's threads: each is woken and runs 3 µs before its first row of
 * a call, and blocks 2 µs after its last one. If it has nothing to do for `pauseNs`, or migrates, another thread
 * takes the CPU from it. Lines are in the order in which the buffers of two CPUs would be emptied, `batch` at a time.
 */
export function ktraceOf(
  rows,
  { command = 'llama-cli', pauseNs = 3000, batch = 8, parents = false, list = true } = {},
) {
  const events = []
  const add = (at, cpu, what) => events.push({ at, cpu, text: `${at} [${cpu}] ${what}` })
  const task = (comm, tid, ...rest) => `[${[comm, tid, ...(parents ? [1] : []), 120, ...rest].join(' ')}]`
  const swapped = (at, cpu, from, to) => add(at, cpu, `sched_switch: ${from} => ${to}`)
  for (const { tid, hits } of staysOf(rows)) {
    const me = (...state) => task(command, tid, ...state)
    const idle = (cpu, ...state) => task(`swapper/${cpu}`, 0, ...state)
    const other = (cpu, ...state) => task(`kworker/${cpu}:1`, 40 + cpu, ...state)
    const [first, last] = [hits[0], hits.at(-1)]
    add(first.at - 4000n, first.cpu, `sched_wakeup: ${tid} ${command}`)
    swapped(first.at - 3000n, first.cpu, idle(first.cpu, 0), me())
    hits.slice(1).forEach(({ at, cpu }, i) => {
      const before = hits[i]
      const third = (at - before.at) / 3n
      if (third < pauseNs / 3 && cpu === before.cpu) return
      swapped(before.at + third, before.cpu, me(256), other(before.cpu))
      swapped(at - third, cpu, other(cpu, 1), me())
    })
    swapped(last.at + 2000n, last.cpu, me(1), idle(last.cpu))
  }
  events.sort((a, b) => Number(a.at - b.at))
  const batches = events.map((event, i) => ({ event, batch: Math.floor(i / batch), i }))
  batches.sort((a, b) => a.batch - b.batch || a.event.cpu - b.event.cpu || a.i - b.i)
  const tids = [...new Set(rows.map((row) => row.pid))]
  return [...(list ? [`Children PIDs are: ${tids.join(',')}`] : []), ...batches.map(({ event }) => event.text)].join(
    '\n',
  )
}

/** The rows of each thread in each call, in order of time. */
function staysOf(rows) {
  const stays = new Map()
  let call = 0
  for (const row of rows.toSorted((a, b) => Number(BigInt(a.ts) - BigInt(b.ts)))) {
    if (row.type === '10') call++
    const key = `${row.pid} ${call}`
    if (!stays.has(key)) stays.set(key, { tid: row.pid, hits: [] })
    stays.get(key).hits.push({ at: BigInt(row.ts), cpu: Number(row.cpu) })
  }
  return stays.values()
}

/** Lines without those at `places`. */
export const without = (text, places) =>
  text
    .split('\n')
    .filter((_, i) => !places.includes(i))
    .join('\n')
