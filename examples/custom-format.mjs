// A custom log format: the output of a home-made profiler becomes operators on workers.
//   node examples/custom-format.mjs
import { convert, LineCursor, UNKNOWN } from 'ggml2perfetto/core'
import { openTrace } from 'ggml2perfetto/node'

const LINE = /^(?<worker>\d+) (?<startUs>\d+) (?<endUs>\d+) (?<op>\w+) (?<tensor>\S+)$/

const myProfiler = {
  name: 'my-profiler',
  title: 'lines of worker, start and end in µs, op, tensor',
  sniff: (head) => new TextDecoder().decode(head).startsWith('my profiler 1\n'),
  async *read(source, { names }) {
    yield [{ kind: 'input', format: 'my-profiler', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    const [lines, ids] = [new LineCursor(source, 'my-profiler'), new Map()]
    for (let isMore = true, lastNs = 0; isMore; ) {
      isMore = await lines.fill()
      const batch = []
      while (lines.next()) {
        const { line, offset: byte, text } = lines
        if (line === 1) continue
        const { worker, startUs, endUs, op, tensor } = LINE.exec(text)?.groups ?? {}
        if (!tensor) {
          batch.push({ kind: 'issue', title: 'not a line of ours', detail: text, at: { line, byte }, atNs: lastNs })
          continue
        }
        const id = ids.get(tensor) ?? ids.size
        if (!ids.has(tensor)) batch.push({ ...UNKNOWN.tensor, id, name: names.id(tensor), op: names.id(op) })
        ids.set(tensor, id)
        const times = { startNs: startUs * 1000, endNs: endUs * 1000, waitEndNs: endUs * 1000 }
        batch.push({ ...UNKNOWN.operator, ...times, tensor: id, worker: Number(worker) })
        lastNs = times.endNs
      }
      yield batch
    }
  },
}

const log = new Blob(['my profiler 1\n0 10 18 MUL_MAT ffn_up-0\n1 11 19 MUL_MAT ffn_up-0\nwhat?\n0 19 20 ADD l_out-0'])
const trace = await openTrace(convert({ name: 'run.log', source: log }, { formats: [myProfiler] }))
console.log(trace.query('select ts, dur, name, category from slice order by ts').rows)
