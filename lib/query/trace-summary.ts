import { Reader } from 'protobufjs/minimal.js'
import {
  TraceMetricV2Bundle as Bundle,
  DimensionSpec,
  MetricDimension,
  MetricRow,
  MetricValue,
  TraceMetricV2Spec as Spec,
  TraceSummary,
} from '../generated/trace_processor.ts'
import { type Cell, integerReader } from './cells.ts'
import { Message } from './message.ts'

/** Metrics of a trace summary that have the same dimensions. */
export interface MetricBundle {
  /** Ids of the metrics. */
  readonly metrics: readonly string[]
  /** Names of the dimensions, such as `phase`. */
  readonly dimensions: readonly string[]
  /** Values of all dimensions, and of all metrics. */
  readonly rows: readonly { readonly dimensions: readonly Cell[]; readonly values: readonly (number | null)[] }[]
}

/** Reads a `TraceSummary`. Throws RangeError if it is damaged. */
export function bundlesOf(summary: Uint8Array): MetricBundle[] {
  return new Message(summary).messages(TraceSummary.metric_bundles).map((bundle) => {
    const specs = bundle.messages(Bundle.specs)
    const [first] = specs
    const named = first?.messages(Spec.dimensions_specs).map((message) => message.text(DimensionSpec.name)) ?? []
    return {
      metrics: specs.map((spec) => spec.text(Spec.id)),
      dimensions: named.length > 0 ? named : (first?.texts(Spec.dimensions) ?? []),
      rows: bundle.messages(Bundle.row).map((row) => ({
        dimensions: row.all(MetricRow.dimension).map(dimensionOf),
        values: row.all(MetricRow.values).map(metricOf),
      })),
    }
  })
}

function metricOf(bytes: Uint8Array): number | null {
  const reader = Reader.create(bytes)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    if (tag >>> 3 === MetricValue.double_value) return reader.double()
    reader.skipType(tag & 7)
  }
  return null
}

function dimensionOf(bytes: Uint8Array): Cell {
  const reader = Reader.create(bytes)
  while (reader.pos < reader.len) {
    const tag = reader.uint32()
    switch (tag >>> 3) {
      case MetricDimension.string_value:
        return reader.string()
      case MetricDimension.int64_value:
        return integerReader(bytes.subarray(reader.pos))()
      case MetricDimension.double_value:
        return reader.double()
      case MetricDimension.bool_value:
        return Number(reader.bool())
    }
    reader.skipType(tag & 7)
  }
  return null
}
