/** Statistics of runs: reads, compares and explains them. */
export type * from './analyze/analysis.ts'
export { ANALYSIS_SCHEMA } from './analyze/analysis.ts'
export { compareRuns, type RunsOfSide } from './analyze/compare/compare.ts'
export * from './analyze/compare/figures.ts'
export { type Gate, gateOf } from './analyze/compare/gate.ts'
export type { ExpertCacheSize } from './analyze/experts/caches.ts'
export { findings, lookedAt, RULES } from './analyze/findings/findings.ts'
export { type NotRecorded, notRecorded } from './analyze/findings/not-recorded.ts'
export { type Advice, adviceOf, type Program } from './analyze/findings/program.ts'
export type { Limit, Looked, OwnAdvice, Rule } from './analyze/findings/rule.ts'
export { scalingSentence, threadScaling } from './analyze/findings/thread-scaling.ts'
export * from './analyze/findings/why-request.ts'
export { analysisJsonSchema, type JsonSchema } from './analyze/json-schema.ts'
export { type MeasuredPeaks, type MeasuredRate, parsePeakFile, peaksOfMachine } from './analyze/model/peaks.ts'
export { costAt, costUpTo, decodeBytes, prefillFlop, type StaticOptions } from './analyze/model/static.ts'
export * from './analyze/operators/groups.ts'
export * from './analyze/scaling/scaling.ts'
export * from './analyze/what-if/figures.ts'
export {
  type AttentionTime,
  KERNELS_SCHEMA,
  type KernelTimes,
  type NodeTime,
  type ProductTime,
  parseKernelFile,
} from './analyze/what-if/kernels.ts'
export { DAG_SCHEMA, type Dag, type DagEdge, type DagNode, type DagRange, dagOf, type Range } from './dag/dag.ts'
export * from './dag/diff.ts'
export { type DagDrawOptions, draw, type NodeValues } from './dag/draw.ts'
export { drawDiff } from './dag/draw-diff.ts'
export {
  type Drawing,
  type DrawnEdge,
  type DrawnGroup,
  type DrawnLegend,
  type DrawnNode,
  toDot,
} from './dag/drawing.ts'
export { type ColorScale, METRICS, type Metric, type MetricName } from './dag/metrics.ts'
export type { ModelBlock } from './model/blocks.ts'
export type { ContextRole } from './model/roles.ts'
export { type Work, workOf } from './model/work.ts'
export { type AnalyzeOptions, analyze } from './pipeline/analyze.ts'
export type { LogInput } from './pipeline/inputs.ts'
export { type ModelAnalysis, modelOf } from './pipeline/models.ts'
export { readAnalysis } from './pipeline/read-analysis.ts'
export { type RunOfWhatIf, WHAT_IF_SERIES, type WhatIfOptions, whatIf } from './pipeline/what-if.ts'
