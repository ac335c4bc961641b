import type { GroupKind } from './rows.ts'

/** What becomes of slices of a category: rows of some kind, or what the GPU's rows draw. */
export type Route = GroupKind | 'api' | 'kernel' | 'memcpy' | 'memset' | 'sync'

/** Categories of the profiler of PyTorch (libkineto's ActivityType.cpp); all others are drawn by process and thread. */
const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['cpu_op', 'operators'],
  ['user_annotation', 'operators'],
  ['python_function', 'python'],
  ['cuda_runtime', 'api'],
  ['cuda_driver', 'api'],
  ['xpu_runtime', 'api'],
  ['xpu_driver', 'api'],
  ['kernel', 'kernel'],
  ['gpu_memcpy', 'memcpy'],
  ['gpu_memset', 'memset'],
  ['gpu_user_annotation', 'annotations'],
  ['cuda_sync', 'sync'],
  ['cuda_event', 'sync'],
  ['cpu_instant_event', 'memory'],
  ['overhead', 'profiler'],
  ['Trace', 'profiler'],
])

/** A category of the source. */
export interface EventCategory {
  /** Its name's id; undefined where an event has no category. */
  readonly name: number | undefined
  readonly text: string
  readonly route: Route
}

/** What becomes of a category. */
export function routeOf(text: string): Route {
  return ROUTES.get(text) ?? 'process'
}

/** A Python function without the folders of its file: those of an absolute path tell of the machine, not of the program. */
export function withoutFolders(name: string): string {
  const packages = /^(?:[A-Za-z]:)?[/\\][^(]*[/\\](?:site|dist)-packages[/\\]/
  return name.replace(packages, '').replace(/^(?:[A-Za-z]:)?[/\\](?:[^(]*[/\\])?/, '')
}
