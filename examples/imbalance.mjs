// Reads the events of a log without making a trace: how long do workers wait for each other, by op?
//   node examples/imbalance.mjs [log]
import { eventsOf, Names } from 'ggml2perfetto'
import { inputOf } from 'ggml2perfetto/node'

const names = new Names()
const tensors = []
const byOp = new Map()

for await (const batch of eventsOf(inputOf(process.argv[2] ?? 'examples/moe.csv'), names)) {
  for (const event of batch) {
    if (event.kind === 'tensor') tensors[event.id] = event
    if (event.kind !== 'operator') continue
    const op = names.text(tensors[event.tensor].op)
    const sum = byOp.get(op) ?? { computeNs: 0, waitNs: 0 }
    sum.computeNs += event.endNs - event.startNs
    sum.waitNs += event.waitEndNs - event.endNs
    byOp.set(op, sum)
  }
}

const share = ({ computeNs, waitNs }) => waitNs / (computeNs + waitNs)
console.log('op                compute       wait   share waiting')
for (const [op, sum] of [...byOp].sort(([, a], [, b]) => b.waitNs - a.waitNs)) {
  const ms = (ns) => `${(ns / 1e6).toFixed(3)} ms`.padStart(10)
  console.log(
    `${op.padEnd(14)} ${ms(sum.computeNs)} ${ms(sum.waitNs)}   ${(100 * share(sum)).toFixed(0).padStart(3)} %`,
  )
}
