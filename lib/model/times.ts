import { Inferred } from './inferred.ts'

/**
 * What the times of an input's events are (`times` of its first event):
 * - `recorded`: the input contains the time of each event, but of those with an {@link Inferred} bit of {@link isPlaced}, or without an end;
 * - `durations`: it contains durations and no times. Events are laid end to end: what an event lasts is known, the time between two
 *   events is not;
 * - `order`: it contains neither. Events are drawn in the order of its records, so no difference of two times is a duration.
 *
 * A figure that is a difference of times which are not recorded is not known: null, wherever it is shown. What the input itself states
 * (a duration that a program measured) stays.
 */
export type Times = 'recorded' | 'durations' | 'order'

/** What the times of an input are. */
export function timesOf({
  clock,
  times = 'recorded',
}: {
  readonly clock: string
  readonly times?: Times | undefined
}): Times {
  return clock === 'none' ? 'order' : times
}

/** What is to be said where a duration is not known because of an input's times. */
export const WITHOUT_TIMES: Readonly<Record<Times, string>> = {
  recorded: 'all its times are the same',
  durations: 'it contains durations and no times: its events are laid end to end',
  order: 'it contains no times: its events are drawn in the order of its records',
}

/** Bits of an event whose start is no recorded time. */
const NOT_PLACED = Inferred.Order | Inferred.Laid | Inferred.Place | Inferred.Turns

/** Is the time of an event recorded, so that the time from it to another such event is a duration? `inferred`: {@link Inferred} bits. */
export function isPlaced(inferred: number): boolean {
  return (inferred & NOT_PLACED) === 0
}
