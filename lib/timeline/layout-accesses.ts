import type * as of from './of.ts'
import { at, counter, group, track } from './place.ts'

/** The rows of samples of data addresses: a part of the layout, after Faults and I/O. */
export const ACCESSES = {
  accesses: group('run', {
    rank: at(6, 10),
    name: 'Memory samples',
    description:
      'Page faults, loads and stores that perf sampled with their addresses, by the tensor that was at the address: from another ' +
      'file, joined with this log.',
  }),
  accessRate: counter<of.Nth & { readonly what: string }>('accesses', {
    rank: ({ nth }) => nth,
    name: ({ what }) => `${what} per ms`,
    description: ({ what }) =>
      `Number of ${what} per millisecond, in tensors and elsewhere: events, that is samples multiplied by the period of sampling.`,
    unit: 'count',
  }),
  accessRole: track<of.Nth & { readonly tensors: string }>('accesses', {
    rank: ({ nth }) => 64 + nth,
    name: ({ tensors }) => tensors,
    description: ({ tensors }) =>
      `Samples in ${tensors}, in all layers: a slice for each interval with samples. Its name and colour are the power of two of ` +
      'their number.',
  }),
} as const
