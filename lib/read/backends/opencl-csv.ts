// The table of a llama.cpp that was built with GGML_OPENCL_PROFILING, `cl_profiling.csv`: a row for each kernel, in the order of launches.
//
//   op name, kernel name, exec duration (ms), global size, local size, output size
//   Qcur-0,kernel_mul_mat_q4_0_f32,0.123904,64x2x1,64x1x1,4096x2x1x1
//
// It has no times: kernels are laid end to end. `cl_trace.json`, of the same run, has them (format chrome-json).

import { CsvRow } from '../../input/csv-row.ts'
import { LineCursor } from '../../input/line-cursor.ts'
import type { InputEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { type ChunkReader, EventBatch, readBatches } from '../common/batches.ts'
import { deviceOperator } from '../common/device-work.ts'
import { holding } from '../common/holdings.ts'
import type { Format } from '../format.ts'

const HEAD = /^op name, ?kernel name, ?exec duration \(ms\), ?global size/
const BATCH_EVENTS = 4096

export const openclCsv: Format = {
  name: 'opencl-csv',
  title: "cl_profiling.csv of llama.cpp's OpenCL backend: kernels",
  sniff: (head) => HEAD.test(new TextDecoder().decode(head)),
  read(source, { names }) {
    const lines = new LineCursor(source, openclCsv.name, true)
    const batch = new EventBatch()
    const row = new CsvRow()
    let [atNs, kernels] = [0, 0]
    const readRow = () => {
      row.split(lines.bytes, lines.start, lines.end)
      const ms = row.number(2)
      const ns = Math.round(ms * 1e6)
      if (row.count !== 6 || !(ns >= 0) || !Number.isSafeInteger(ns) || row.text(1) === '') {
        const detail = `expected 6 columns with a kernel and a duration, found ${row.count}`
        batch.add(issueOf(lines.isTorn ? 'torn-record' : 'unreadable-row', detail, lines.position, atNs))
        return
      }
      const facts = { op: row.text(0), global_size: row.text(3), local_size: row.text(4), output_size: row.text(5) }
      batch.add(deviceOperator(names, 'OpenCL', { name: row.text(1), timeNs: ns, facts }, atNs, atNs + ns))
      atNs += ns
      kernels++
    }
    return readBatches(lines, {
      batch,
      readChunk(isLast) {
        if (!batch.hasBegun) batch.begin(INPUT)
        while (lines.next()) {
          if (lines.line > 1 && lines.end > lines.start) readRow()
          if (batch.size >= BATCH_EVENTS) return true
        }
        if (!isLast) return false
        batch.add({ kind: 'facts', ...holding({ kernel: kernels }, 'no kernels') })
        batch.end(lines)
        return false
      },
    } satisfies ChunkReader)
  },
}

const INPUT: InputEvent = {
  ...{ kind: 'input', format: 'opencl-csv', clock: 'unknown', originNs: 0n, times: 'durations' },
  title: 'OpenCL kernels',
  attributes: { times: 'none in the table: kernels are laid end to end' },
  capabilities: { operators: false, requests: true },
}
