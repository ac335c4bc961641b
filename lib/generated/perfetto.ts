// Generated from proto/perfetto.proto by scripts/generate-proto.mjs; do not edit.

/** Field numbers of the message Trace. */
export enum Trace {
  packet = 1,
}

/** Field numbers of the message TracePacket. */
export enum TracePacket {
  ftrace_events = 1,
  clock_snapshot = 6,
  timestamp = 8,
  trusted_packet_sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  system_info = 45,
  gpu_render_stage_event = 53,
  timestamp_clock_id = 58,
  trace_packet_defaults = 59,
  track_descriptor = 60,
  cpu_info = 67,
  trace_attributes = 126,
}

/** Values of the enum SequenceFlags. */
export enum SequenceFlags {
  SEQ_INCREMENTAL_STATE_CLEARED = 1,
  SEQ_NEEDS_INCREMENTAL_STATE = 2,
}

/** Field numbers of the message TracePacketDefaults. */
export enum TracePacketDefaults {
  track_event_defaults = 11,
  timestamp_clock_id = 58,
}

/** Field numbers of the message TrackEventDefaults. */
export enum TrackEventDefaults {
  track_uuid = 11,
}

/** Field numbers of the message ClockSnapshot. */
export enum ClockSnapshot {
  clocks = 1,
  primary_trace_clock = 2,
}

/** Field numbers of the message Clock. */
export enum Clock {
  clock_id = 1,
  timestamp = 2,
  is_incremental = 3,
}

/** Values of the enum BuiltinClock. */
export enum BuiltinClock {
  BUILTIN_CLOCK_UNKNOWN = 0,
  BUILTIN_CLOCK_REALTIME = 1,
  BUILTIN_CLOCK_MONOTONIC = 3,
  BUILTIN_CLOCK_MONOTONIC_RAW = 5,
  BUILTIN_CLOCK_BOOTTIME = 6,
  BUILTIN_CLOCK_PERF = 10,
}

/** Field numbers of the message TrackEvent. */
export enum TrackEvent {
  category_iids = 3,
  debug_annotations = 4,
  legacy_event = 6,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  name = 23,
  counter_value = 30,
  double_counter_value = 44,
  flow_ids = 47,
  terminating_flow_ids = 48,
  correlation_id_str = 53,
  correlation_id_str_iid = 54,
  gpu_correlation = 3000,
}

/** Values of the enum TrackEvent.Type. */
export enum TrackEventType {
  TYPE_UNSPECIFIED = 0,
  TYPE_SLICE_BEGIN = 1,
  TYPE_SLICE_END = 2,
  TYPE_INSTANT = 3,
  TYPE_COUNTER = 4,
}

/** Field numbers of the message LegacyEvent. */
export enum LegacyEvent {
  phase = 2,
  unscoped_id = 6,
  bind_to_enclosing = 12,
}

/** Field numbers of the message GpuCorrelation. */
export enum GpuCorrelation {
  render_stage_submission_event_ids = 1,
}

/** Field numbers of the message GpuRenderStageEvent. */
export enum GpuRenderStageEvent {
  event_id = 1,
  duration = 2,
  context = 5,
  extra_data = 6,
  submission_id = 10,
  gpu_id = 11,
  hw_queue_iid = 13,
  stage_iid = 14,
  name = 17,
}

/** Field numbers of the message ExtraData. */
export enum ExtraData {
  name = 1,
  value = 2,
}

/** Field numbers of the message DebugAnnotation. */
export enum DebugAnnotation {
  name_iid = 1,
  bool_value = 2,
  uint_value = 3,
  int_value = 4,
  double_value = 5,
  string_value = 6,
  pointer_value = 7,
  name = 10,
  dict_entries = 11,
  array_values = 12,
  string_value_iid = 17,
}

/** Field numbers of the message InternedData. */
export enum InternedData {
  event_categories = 1,
  event_names = 2,
  debug_annotation_names = 3,
  graphics_contexts = 23,
  gpu_specifications = 24,
  debug_annotation_string_values = 29,
  correlation_id_str = 43,
}

/** Field numbers of the message InternedGraphicsContext. */
export enum InternedGraphicsContext {
  iid = 1,
  pid = 2,
  api = 3,
}

/** Values of the enum InternedGraphicsContext.Api. */
export enum InternedGraphicsContextApi {
  UNDEFINED = 0,
  VULKAN = 2,
  CUDA = 4,
}

/** Field numbers of the message InternedGpuRenderStageSpecification. */
export enum InternedGpuRenderStageSpecification {
  iid = 1,
  name = 2,
  description = 3,
  category = 4,
}

/** Values of the enum InternedGpuRenderStageSpecification.RenderStageCategory. */
export enum InternedGpuRenderStageSpecificationRenderStageCategory {
  OTHER = 0,
  COMPUTE = 2,
}

/** Field numbers of the message EventCategory. */
export enum EventCategory {
  iid = 1,
  name = 2,
}

/** Field numbers of the message EventName. */
export enum EventName {
  iid = 1,
  name = 2,
}

/** Field numbers of the message DebugAnnotationName. */
export enum DebugAnnotationName {
  iid = 1,
  name = 2,
}

/** Field numbers of the message InternedString. */
export enum InternedString {
  iid = 1,
  str = 2,
}

/** Field numbers of the message TrackDescriptor. */
export enum TrackDescriptor {
  uuid = 1,
  name = 2,
  process = 3,
  thread = 4,
  parent_uuid = 5,
  counter = 8,
  child_ordering = 11,
  sibling_order_rank = 12,
  description = 14,
  sibling_merge_behavior = 15,
}

/** Values of the enum TrackDescriptor.ChildTracksOrdering. */
export enum TrackDescriptorChildTracksOrdering {
  UNKNOWN = 0,
  LEXICOGRAPHIC = 1,
  CHRONOLOGICAL = 2,
  EXPLICIT = 3,
}

/** Values of the enum TrackDescriptor.SiblingMergeBehavior. */
export enum TrackDescriptorSiblingMergeBehavior {
  SIBLING_MERGE_BEHAVIOR_UNSPECIFIED = 0,
  SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME = 1,
  SIBLING_MERGE_BEHAVIOR_NONE = 2,
}

/** Field numbers of the message ProcessDescriptor. */
export enum ProcessDescriptor {
  pid = 1,
  legacy_sort_index = 3,
  process_name = 6,
  process_labels = 8,
}

/** Field numbers of the message ThreadDescriptor. */
export enum ThreadDescriptor {
  pid = 1,
  tid = 2,
  legacy_sort_index = 3,
  thread_name = 5,
}

/** Field numbers of the message CounterDescriptor. */
export enum CounterDescriptor {
  type = 1,
  unit = 3,
  unit_name = 6,
  y_axis_share_key = 7,
}

/** Values of the enum CounterDescriptor.BuiltinCounterType. */
export enum CounterDescriptorBuiltinCounterType {
  COUNTER_UNSPECIFIED = 0,
  COUNTER_THREAD_TIME_NS = 1,
}

/** Values of the enum CounterDescriptor.Unit. */
export enum CounterDescriptorUnit {
  UNIT_UNSPECIFIED = 0,
  UNIT_TIME_NS = 1,
  UNIT_COUNT = 2,
  UNIT_SIZE_BYTES = 3,
}

/** Field numbers of the message TraceAttributes. */
export enum TraceAttributes {
  attribute = 1,
}

/** Field numbers of the message TraceAttribute. */
export enum TraceAttribute {
  key = 1,
  long_value = 2,
  string_value = 3,
}

/** Field numbers of the message SystemInfo. */
export enum SystemInfo {
  utsname = 1,
  num_cpus = 8,
}

/** Field numbers of the message Utsname. */
export enum Utsname {
  sysname = 1,
  release = 3,
}

/** Field numbers of the message CpuInfo. */
export enum CpuInfo {
  cpus = 1,
}

/** Field numbers of the message CpuInfo.Cpu. */
export enum Cpu {
  processor = 1,
}

/** Field numbers of the message FtraceEventBundle. */
export enum FtraceEventBundle {
  cpu = 1,
  event = 2,
  compact_sched = 4,
}

/** Field numbers of the message CompactSched. */
export enum CompactSched {
  switch_timestamp = 1,
  switch_prev_state = 2,
  switch_next_pid = 3,
  switch_next_prio = 4,
  intern_table = 5,
  switch_next_comm_index = 6,
  waking_timestamp = 7,
  waking_pid = 8,
  waking_target_cpu = 9,
  waking_prio = 10,
  waking_comm_index = 11,
  waking_common_flags = 12,
}

/** Field numbers of the message FtraceEvent. */
export enum FtraceEvent {
  timestamp = 1,
  pid = 2,
  sched_switch = 4,
  common_flags = 5,
  sched_waking = 20,
}

/** Field numbers of the message SchedSwitchFtraceEvent. */
export enum SchedSwitchFtraceEvent {
  prev_comm = 1,
  prev_pid = 2,
  prev_prio = 3,
  prev_state = 4,
  next_comm = 5,
  next_pid = 6,
  next_prio = 7,
}

/** Field numbers of the message SchedWakingFtraceEvent. */
export enum SchedWakingFtraceEvent {
  comm = 1,
  pid = 2,
  prio = 3,
  target_cpu = 5,
}
