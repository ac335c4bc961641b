/** A bit set of the fields of an event that were not recorded but inferred; shown in the trace as `inferred`. */
export enum Inferred {
  /** The end is the start of the next record: it includes any gap between them. */
  End = 1,
  /** No end was recorded and none can be inferred: the slice is drawn with a duration of 0. */
  NoEnd = 2,
  /** The wait is the gap to the thread's next operator; it may include operators that were not recorded. */
  Wait = 4,
  /** The worker index: from the thread that runs the graph and the threads active at the same time. */
  Worker = 8,
  /** The call's borders: from repeating graphs and phases. */
  Call = 16,
  /** The phase: from the number of tokens. */
  Phase = 32,
  /** The number of tokens: from the size of the embedding lookup; of a request, from the tokens in its slot at its end. */
  TokenCount = 64,
  /** The op's name: from the table that fits the tensors it is used on. */
  OpName = 128,
  /** The counts: the processor counted for a part of the time only. */
  Counts = 256,
  /** The layer: that of the sources. */
  Layer = 512,
  /** The place in time: sums are drawn one after the other in the time of what they sum. */
  Place = 1024,
  /** The parts of a request: from its server's own figures. */
  Parts = 2048,
  /** The time: from the order of the records, as the log has no times, or none to the nanosecond. */
  Order = 4096,
  /** The start: durations are laid end to end, as only they are recorded. */
  Laid = 8192,
  /** The duration: from the rate. */
  Rate = 16384,
  /** The start: from a counter that wraps every few seconds. */
  Turns = 32768,
}

const WORDS: readonly [number, string][] = [
  [Inferred.End, 'end: start of the next record'],
  [Inferred.NoEnd, 'no end recorded'],
  [Inferred.Wait, 'gap to the next operator: may contain operators that were not recorded'],
  [Inferred.Worker, 'worker index'],
  [Inferred.Call, 'call borders'],
  [Inferred.Phase, 'phase'],
  [Inferred.TokenCount, 'token count'],
  [Inferred.OpName, 'op name'],
  [Inferred.Counts, 'counts of events: extrapolated, the processor counted for a part of the time'],
  [Inferred.Layer, 'layer: that of the sources'],
  [Inferred.Place, 'place in time: sums are laid end to end in the time of what they sum'],
  [Inferred.Parts, "parts: from the server's own figures"],
  [Inferred.Order, 'time: from the order of the records, to the unit of the times in the log if it has any'],
  [Inferred.Laid, 'start: laid end to end, only durations are recorded'],
  [Inferred.Rate, 'duration: from the rate'],
  [Inferred.Turns, 'start: a counter that wraps; its whole turns are not known'],
]

/** What {@link Inferred} bits mean, separated by semicolons. */
export function inferredText(bits: number): string {
  return WORDS.filter(([bit]) => (bits & bit) !== 0)
    .map(([, word]) => word)
    .join('; ')
}
