/**
 * Cuts a JSON of rocprofv3 to the first dispatches of each kernel, with their kernels and agents, and the first names of operations.
 * Commands, hosts and paths are left out.
 *
 *     node scripts/cut-rocprof.mjs <from.json> <to.json> <dispatches> <most of a kernel>
 */
import { readFileSync, writeFileSync } from 'node:fs'

const [from, to, most, mostOfKernel] = process.argv.slice(2)
const [process_] = JSON.parse(readFileSync(from, 'utf8'))['rocprofiler-sdk-tool']
const { metadata, agents, strings, kernel_symbols: kernels, buffer_records: records } = process_

const perKernel = new Map()
const dispatches = records.kernel_dispatch
  .filter(({ dispatch_info: { kernel_id: id } }) => {
    perKernel.set(id, (perKernel.get(id) ?? 0) + 1)
    return perKernel.get(id) <= Number(mostOfKernel)
  })
  .slice(0, Number(most))
const used = new Set(dispatches.map(({ dispatch_info: info }) => info.kernel_id))
const pick = (object, keys) => Object.fromEntries(keys.map((key) => [key, object[key]]))

const firstNames = (kinds) => kinds.map(({ kind, operations }) => ({ kind, operations: operations.slice(0, 3) }))

const cut = {
  metadata: {
    ...pick(metadata, ['pid', 'init_time', 'fini_time']),
    node: { release: metadata.node.release },
    command: ['python3'],
  },
  agents: agents
    .slice(0, 4)
    .map((agent) =>
      pick(agent, ['id', 'type', 'name', 'product_name', 'node_id', 'logical_node_id', 'logical_node_type_id']),
    ),
  counters: [],
  strings: {
    ...strings,
    callback_records: [],
    buffer_records: firstNames(strings.buffer_records),
    att_filenames: [],
    code_object_snapshot_filenames: [],
  },
  kernel_symbols: kernels
    .filter(({ kernel_id: id }) => used.has(id))
    .map((kernel) => ({
      ...pick(kernel, ['kernel_id', 'sgpr_count', 'arch_vgpr_count', 'truncated_kernel_name']),
      formatted_kernel_name: kernel.formatted_kernel_name.slice(0, 300),
    })),
  callback_records: { counter_collection: [] },
  buffer_records: { ...records, kernel_dispatch: dispatches },
}
writeFileSync(to, `${JSON.stringify({ 'rocprofiler-sdk-tool': [cut] })}\n`)
