import type { FunctionEvent, FunctionPurpose } from '../../model/events.ts'

/** Stages of loading that are drawn before the first call. */
const STAGES: ReadonlySet<FunctionPurpose> = new Set([
  'load-model',
  'read-header',
  'map',
  'copy-weights',
  'create-context',
  'reserve',
  'load-lora',
])
/** A program that loads models again and again without a call. */
const STAGES_MAX = 1024

/** The functions that load a model before the first call, of the thread that loads first. */
export class LoadStages {
  private stages: FunctionEvent[] = []

  add(event: FunctionEvent): void {
    const { stages } = this
    if (!STAGES.has(event.what) || stages.length >= STAGES_MAX) return
    if (stages.length === 0 || stages[0]!.tid === event.tid) stages.push(event)
  }

  /** Those that end before a time, in order of their starts, outer ones first. */
  until(ns: number): readonly FunctionEvent[] {
    return this.stages.filter(({ endNs }) => endNs <= ns).sort((a, b) => a.startNs - b.startNs || b.endNs - a.endNs)
  }
}
