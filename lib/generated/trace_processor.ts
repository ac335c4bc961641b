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
  append_result = 201,
  query_result = 203,
  finalize_data_result = 212,
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
