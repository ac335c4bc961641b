/**
 * A long file of PyTorch's profiler, synthetic: steps of operators with shapes, Python functions, launches, kernels, arrows, in the order of
 * the profiler: first the host's events, then the GPU's, last the base time.
 */
import { closeSync, openSync, writeSync } from 'node:fs'

const PID = 4711
const STEP_US = 400
const KERNELS = [
  'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)',
  'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas',
  'void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4>)',
]
const OPERATORS = ['aten::linear', 'aten::mm', 'aten::add', 'aten::mean', 'aten::mul', 'aten::pow', 'aten::silu']

const event = (fields, args) =>
  `  {\n    ${fields}${args === undefined ? '' : `,\n    "args": {\n      ${args}\n    }`}\n  },\n`
const at = (us) => `${1428625731622 + Math.floor(us)}.${String(Math.round((us % 1) * 1000) % 1000).padStart(3, '0')}`
const slice = (cat, name, pid, tid, us, dur, args) =>
  event(
    `"ph": "X", "cat": "${cat}", "name": "${name}", "pid": ${pid}, "tid": ${tid},\n    "ts": ${at(us)}, "dur": ${dur.toFixed(3)}`,
    args,
  )

/** The operators of one step, the calls in them, and the Python functions around them. */
function* host(step) {
  const us = step * STEP_US
  for (let i = 0; i < OPERATORS.length; i++) {
    const id = step * 100 + i
    const dims = `[[${1 + (step % 50)},${512 + 64 * i}],[${512 + 64 * i},1024]]`
    yield slice(
      'cpu_op',
      OPERATORS[i],
      PID,
      PID,
      us + i * 50 + 5.125,
      40.5,
      `"External id": ${id},"Record function id": 0, "Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[1024,1],[1,1024]], "Input Dims": ${dims}, "Ev Idx": ${id}`,
    )
  }
}

function* python(step) {
  for (const depth of [0, 1, 2, 3]) {
    const name = `torch/nn/modules/module.py(${1500 + depth}): _call_impl`
    const args = `"Python parent id": ${step * 4 + depth}, "Python id": ${step * 4 + depth + 1}, "Ev Idx": ${step * 11 + depth}`
    yield slice('python_function', name, PID, PID, step * STEP_US + depth, STEP_US - 10 - 2 * depth, args)
  }
}

function* gpu(step) {
  for (let i = 0; i < 4; i++) {
    const us = step * STEP_US + i * 50
    const correlation = 600_000 + step * 4 + i
    const arrow = (ph, pid, tid, place, more = '') =>
      event(
        `"ph": "${ph}", "id": ${correlation}, "pid": ${pid}, "tid": ${tid}, "ts": ${at(place)},\n    "cat": "ac2g", "name": "ac2g"${more}`,
      )
    yield slice(
      'kernel',
      KERNELS[i % KERNELS.length],
      0,
      7,
      us + 60.25,
      30.125,
      `"External id": ${step * 100 + i},\n      "queued": 0, "device": 0, "context": 1,\n      "stream": 7, "correlation": ${correlation},\n      "registers per thread": 32,\n      "shared memory": 16,\n      "blocks per SM": 0.121212,\n      "warps per SM": 0.484848,\n      "grid": [${16 + (step % 8)}, 1, 1],\n      "block": [128, 1, 1],\n      "est. achieved occupancy %": 1`,
    )
    yield arrow('f', 0, 7, us + 60.25, ', "bp": "e"')
    yield slice(
      'cuda_runtime',
      'cudaLaunchKernel',
      PID,
      PID,
      us + 20.5,
      6.001,
      `"External id": ${step * 100 + i},\n      "cbid": 211, "correlation": ${correlation}`,
    )
    yield arrow('s', PID, PID, us + 20.5)
  }
}

const HEAD = `{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85017755648}\n  ],\n  "traceEvents": [\n`
const TAIL = `  {\n    "name": "process_name", "ph": "M", "ts": ${at(0)}, "pid": ${PID}, "tid": 0,\n    "args": {\n      "name": "python3"\n    }\n  }\n  ],\n  "traceName": "synthetic",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 1751410836000000000\n}\n`

/** Writes the file; returns its number of events. */
export function makeKineto(path, bytes) {
  const sample = [...host(99_999), ...python(99_999), ...gpu(99_999)].join('').length
  const steps = Math.ceil(bytes / sample)
  const file = openSync(path, 'w')
  let [events, held] = [0, HEAD]
  for (const part of [host, python, gpu]) {
    for (let step = 0; step < steps; step++) {
      for (const text of part(step)) {
        held += text
        events++
      }
      if (held.length < 1 << 22) continue
      writeSync(file, held)
      held = ''
    }
  }
  writeSync(file, held + TAIL)
  closeSync(file)
  return events
}
