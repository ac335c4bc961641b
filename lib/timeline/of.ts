import type { BufferUsage, InputEvent } from '../model/events.ts'
import type { Track, Unit } from '../sink/track.ts'

/** Of the group of an input: the event that begins it, and its number, from 0. */
export type Run = Pick<InputEvent, 'format' | 'clock' | 'attributes' | 'title'> & { readonly input: number }

/** Of a track of a worker: its number. */
export interface Worker {
  readonly worker: number
}

/** Of a track that is the n-th of its kind, in order of first use. */
export interface Nth {
  readonly nth: number
}

/** Of a track of a thread. */
export interface Thread {
  /** Its name; '' = not known. */
  readonly thread: string
  readonly tid: number
}

/** Of a track of a worker: the n-th counter, and what its values are, such as `per ms`. */
export interface Counter extends Worker, Nth {
  readonly counter: string
  readonly per: string
}

/** Of a track of a stream of a GPU. */
export interface Stream extends Nth {
  readonly device: number
  readonly stream: string
}

/** Of a track of a backend buffer, the n-th of its usage, from 1. */
export interface Buffer extends Nth {
  readonly usage: BufferUsage
  readonly title: string
  /** The logger's own identification. */
  readonly label: string
}

/** Of a track that a reader or a program adds: as it is defined. */
export interface Own extends Nth {
  readonly name: string
  readonly description: string
  readonly holds: Track['kind']
  readonly unit: Unit | undefined
  readonly leads: boolean
}
