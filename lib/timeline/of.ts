import type { BufferUsage, InputEvent } from '../model/events.ts'
import type { OwnProcess, OwnThread } from '../model/own-events.ts'
import type { Track, Unit } from '../sink/track.ts'

/** For the group of an input: its input event, its number, from 0, and what is known at its end. */
export interface Run extends Pick<InputEvent, 'format' | 'clock' | 'attributes' | 'title'> {
  readonly input: number
  /** It begins with events of the kernel's scheduler. */
  readonly isOfScheduler: boolean
  readonly workers?: number
  /** Names of the backends of its graphs. */
  readonly backends?: readonly string[]
  /** Identification of the first buffer of weights. */
  readonly weights?: string | undefined
}

/** For a track of a worker: its number. */
export interface Worker {
  readonly worker: number
}

/** For a track that is the n-th of its kind, in order of first use. */
export interface Nth {
  readonly nth: number
}

/** For a track of a thread. */
export interface Thread {
  /** Its name; '' = not known. */
  readonly thread: string
  readonly tid: number
}

/** For a counter track of a worker: the n-th counter, and the reference of its values, such as `per ms`. */
export interface Counter extends Worker, Nth {
  readonly counter: string
  readonly per: string
}

/** For a track of a connection: to a server, or from a client, and the address of that. */
export interface Connection extends Nth {
  readonly direction: 'to' | 'from'
  readonly other: string
}

/** For a track of a GPU stream. */
export interface Stream extends Nth {
  readonly device: number
  readonly stream: string
}

/** For a track of a backend buffer, the n-th of its usage, from 1. */
export interface Buffer extends Nth {
  readonly usage: BufferUsage
  readonly title: string
  /** Identification in the log. */
  readonly label: string
}

/** For a track that a reader or a program adds: its definition. */
export interface Own extends Nth {
  readonly name: string
  readonly description: string
  readonly holds: Track['kind']
  readonly unit: Unit | undefined
  readonly leads: boolean
  readonly ofProcess: OwnProcess | undefined
  readonly ofThread: OwnThread | undefined
}

/** For the track of a meter: what it is, in words. */
export interface Meter extends Nth {
  readonly device: string
  /** Number of the device's group. */
  readonly group: number
  readonly name: string
  readonly unit: Unit
  readonly about: string
}
