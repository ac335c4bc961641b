// Generated from proto/trace_processor.proto by scripts/generate-proto.mjs; do not edit.

/** Field numbers of the message TraceProcessorRpcStream. */
export enum TraceProcessorRpcStream {
  msg = 1,
}

/** Values of the enum TraceProcessorMethod. */
export enum TraceProcessorMethod {
  TPM_APPEND_TRACE_DATA = 1,
  TPM_FINALIZE_TRACE_DATA = 2,
  TPM_QUERY_STREAMING = 3,
  TPM_REGISTER_SQL_PACKAGE = 13,
  TPM_SUMMARIZE_TRACE = 15,
}

/** Field numbers of the message TraceProcessorRpc. */
export enum TraceProcessorRpc {
  seq = 1,
  request = 2,
  response = 3,
  invalid_request = 4,
  fatal_error = 5,
  append_trace_data = 101,
  query_args = 103,
  register_sql_package_args = 108,
  trace_summary_args = 110,
  append_result = 201,
  query_result = 203,
  register_sql_package_result = 211,
  finalize_data_result = 212,
  trace_summary_result = 214,
}

/** Field numbers of the message AppendTraceDataResult. */
export enum AppendTraceDataResult {
  error = 2,
}

/** Field numbers of the message FinalizeDataResult. */
export enum FinalizeDataResult {
  error = 1,
}

/** Field numbers of the message QueryArgs. */
export enum QueryArgs {
  sql_query = 1,
}

/** Field numbers of the message QueryResult. */
export enum QueryResult {
  column_names = 1,
  error = 2,
  batch = 3,
}

/** Values of the enum CellType. */
export enum CellType {
  CELL_NULL = 1,
  CELL_VARINT = 2,
  CELL_FLOAT64 = 3,
  CELL_STRING = 4,
  CELL_BLOB = 5,
}

/** Field numbers of the message CellsBatch. */
export enum CellsBatch {
  cells = 1,
  varint_cells = 2,
  float64_cells = 3,
  blob_cells = 4,
  string_cells = 5,
  is_last_batch = 6,
}

/** Field numbers of the message RegisterSqlPackageArgs. */
export enum RegisterSqlPackageArgs {
  package_name = 1,
  modules = 2,
}

/** Field numbers of the message SqlModule. */
export enum SqlModule {
  name = 1,
  sql = 2,
}

/** Field numbers of the message RegisterSqlPackageResult. */
export enum RegisterSqlPackageResult {
  error = 1,
}

/** Field numbers of the message TraceSummaryArgs. */
export enum TraceSummaryArgs {
  textproto_specs = 2,
  computation_spec = 3,
  output_format = 4,
}

/** Field numbers of the message ComputationSpec. */
export enum ComputationSpec {
  run_all_metrics = 3,
}

/** Values of the enum SummaryFormat. */
export enum SummaryFormat {
  BINARY_PROTOBUF = 0,
  TEXTPROTO = 1,
}

/** Field numbers of the message TraceSummaryResult. */
export enum TraceSummaryResult {
  proto_summary = 1,
  textproto_summary = 2,
  error = 3,
}

/** Field numbers of the message TraceSummary. */
export enum TraceSummary {
  metric_bundles = 3,
}

/** Field numbers of the message TraceMetricV2Bundle. */
export enum TraceMetricV2Bundle {
  row = 2,
  specs = 3,
}

/** Field numbers of the message MetricRow. */
export enum MetricRow {
  values = 1,
  dimension = 2,
}

/** Field numbers of the message MetricValue. */
export enum MetricValue {
  double_value = 2,
}

/** Field numbers of the message MetricDimension. */
export enum MetricDimension {
  string_value = 1,
  int64_value = 2,
  double_value = 3,
  bool_value = 5,
}

/** Field numbers of the message TraceMetricV2Spec. */
export enum TraceMetricV2Spec {
  id = 1,
  dimensions = 2,
  dimensions_specs = 5,
}

/** Field numbers of the message DimensionSpec. */
export enum DimensionSpec {
  name = 1,
}
