import { disturbancesOf, speedOf } from '../../lib/cli.ts'
import type { Examined } from './examine.ts'

/** Version of the document. */
const DOCTOR_SCHEMA = 'ggml2perfetto.doctor/1'

/** What was found and measured, as JSON: docs/reference/doctor.md describes it. */
export function documentOf(examined: Examined): object {
  const { bench, model, models, memory, peaks, work, usualThreads, runs, notRun, swept, scaled, judged, advice } =
    examined
  const { name, architecture, parameters } = model.figures
  const { run, machine, verdict, placement } = judged
  return {
    schema: DOCTOR_SCHEMA,
    program: bench.path,
    model: { path: model.path, bytes: model.bytes, name, architecture, parameters, found: models },
    machine: { cpu: run.cpu, limits: run.limits, memory, cpus: machine },
    peaks,
    work: { prompt_tokens: work.prompt, decode_tokens: work.decode },
    usual_threads: usualThreads,
    runs: runs.map(({ value, analysis }) => ({
      threads: Number(value),
      decode_tokens_per_s: speedOf(analysis, 'decode') || null,
      prefill_tokens_per_s: speedOf(analysis, 'prefill') || null,
      disturbed_by: [...new Set(disturbancesOf(analysis))],
    })),
    not_run: notRun,
    sweep: swept,
    scaling: { decode: scaled.decode, prefill: scaled.prefill },
    verdict,
    placement,
    advice,
  }
}
