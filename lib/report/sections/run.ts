import { count, duration, percent, plural, size, threeDigits } from '../../model/units.ts'
import { baseName, type Context, known } from '../context.ts'
import type { Section } from '../figure.ts'
import { html } from '../html.ts'

/** What ran, and what of it was recorded. Without the name of the host: reports are for other people. */
export function runSection({ analysis: { run, inputs, operators, calls } }: Context): Section {
  const bytes = (run.weights ?? []).reduce((sum, { bytes }) => sum + bytes, 0)
  const mix = (run.weights ?? [])
    .map((weight) => `${weight.type || 'unknown'} ${percent(weight.bytes / bytes)}`)
    .join(', ')
  const phases = Object.entries(calls.by_phase).map(
    ([phase, counted]) => `${phase} ${counted.calls} (${plural(counted.tokens, 'token')})`,
  )
  const facts: readonly (readonly [string, string])[] = [
    ['command', run.command ?? ''],
    ['logs', inputs.map(({ name, format }) => `${baseName(name)} (${format})`).join(', ')],
    ['model', [run.model, run.architecture].filter(Boolean).join(', ')],
    ['model files', run.model_files.map(baseName).join(', ')],
    [
      'parameters',
      known(run.parameters, (value) =>
        value >= 1e9 ? `${threeDigits(value / 1e9)} B` : `${threeDigits(value / 1e6)} M`,
      ),
    ],
    ['weights', bytes > 0 ? `${size(bytes)}: ${mix}` : ''],
    ['layers', known(run.layers || null, String)],
    ['CPU', [run.cpu, known(run.cpus, (value) => plural(value, 'CPU'))].filter(Boolean).join(', ')],
    ['kernel', run.kernel ?? ''],
    ['ggml', run.build ?? ''],
    ['backends', run.backends.join(', ')],
    ['workers', run.workers === 0 ? '' : `${run.workers}, on ${plural(run.threads, 'thread')}`],
    ['duration', known(run.duration_ns, duration)],
    ['calls', phases.join(', ')],
    ['operators', operators.executions === 0 ? '' : count(operators.executions)],
    ['recorded', run.recorded.join(', ')],
    ['counters', run.counters.join(', ')],
    [
      'limited to',
      Object.entries(run.limited_to)
        .map((entry) => entry.join(' '))
        .join(', '),
    ],
  ]
  const shown = facts.filter(([, value]) => value !== '')
  return {
    id: 'run',
    title: 'The run',
    content: [html`<dl>${shown.map(([key, value]) => html`<dt>${key}</dt><dd>${value}</dd>`)}</dl>`],
  }
}
