import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Tracing buffers of the kernel's, for tests: apart from whatever else is traced on this machine. */
const INSTANCES = '/sys/kernel/tracing/instances'

export interface Instance {
  readonly name: string
  set(file: string, value: string | number): void
  read(file: string): Buffer
  /** Unless a tool has done it. */
  remove(): void
}

/** A stopped buffer on CLOCK_MONOTONIC for these events, as `system/event`. */
export function newInstance(name: string, events: readonly string[]): Instance {
  const folder = join(INSTANCES, name)
  mkdirSync(folder)
  const set = (file: string, value: string | number) => writeFileSync(join(folder, file), `${value}`)
  set('tracing_on', 0)
  set('trace_clock', 'mono')
  set('buffer_size_kb', 8192)
  for (const event of events) set(`events/${event}/enable`, 1)
  return {
    name,
    set,
    read: (file) => readFileSync(join(folder, file)),
    remove: () => existsSync(folder) && rmdirSync(folder),
  }
}

/** Does the kernel give this user buffers? */
export function canTrace(name: string): boolean {
  try {
    mkdirSync(join(INSTANCES, name))
    rmdirSync(join(INSTANCES, name))
    return true
  } catch {
    return false
  }
}
