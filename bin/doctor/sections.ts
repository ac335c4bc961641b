import { type Analysis, disturbancesOf, machineWords, scalingSentence, speedOf } from '../../lib/cli.ts'
import { peakTable } from '../commands/peaks.ts'
import { answer, charts } from '../record/sweep.ts'
import { placementSection } from '../stats/placement.ts'
import { limitsIn } from '../stats/run.ts'
import { number, type Section, type StatsTable, some, tableOf, text } from '../stats/section.ts'
import { percent, plural, size, threeDigits } from '../units.ts'
import type { Examined } from './examine.ts'

/** Advice that is printed: the first of it. */
const SHOWN = 3

/** The answer in a line, what to change, and what that would give. */
export function answerLines({ judged, swept, runs, advice }: Examined): string[] {
  const counts = new Set(runs.map(({ value }) => value))
  const rounds = Math.ceil(runs.length / counts.size)
  const shown = advice.slice(0, SHOWN)
  return [
    judged.verdict.sentence,
    ...(counts.size > 1 ? answer(swept, 't', rounds, 'stop other programs, and try again') : []),
    '',
    ...(shown.length > 0 ? shown.flatMap(adviceLines) : ['no advice: nothing that was checked is unusual', '']),
    ...(advice.length > SHOWN ? [`${plural(advice.length - SHOWN, 'further finding')}: --json`, ''] : []),
  ]
}

function adviceLines(advice: Examined['advice'][number], i: number): string[] {
  const { sentence, to_do, phase, explains_share, gives, by } = advice
  return [
    `${i + 1}. ${sentence}`,
    `   to do: ${to_do}`,
    ...(gives.length === 0 && explains_share !== null
      ? [`   gives: less than ${percent(explains_share)} of ${phase}, which it explains`]
      : gives.map((line) => `   gives, ${by}: ${line}`)),
    '',
  ]
}

/** What the answer rests on. */
export function sectionsOf(examined: Examined): Section[] {
  const { peaks, swept, scaled, notRun, judged } = examined
  const { verdict } = judged
  const phases = (['decode', 'prefill'] as const).flatMap((phase) => {
    const figures = scaled[phase]
    return figures ? [scalingSentence(phase, figures)] : []
  })
  const lacking = notRun.map((threads) => `${plural(threads, 'thread')}: not run, the time was too short (--for)`)
  const ceiling =
    verdict.ceiling === null || verdict.ceiling_share === null
      ? 'not known: the weights may fit into the caches, or another device computes'
      : `${threeDigits(verdict.ceiling)} tok/s by ${verdict.ceiling_by}, of which the run reached ${percent(verdict.ceiling_share)}`
  return [
    { title: 'what was run', facts: workFacts(examined) },
    { title: 'machine', facts: machineFacts(examined) },
    {
      title: 'peaks',
      lines: [
        ...peakTable(peaks).map((line) => line.slice(2)),
        ...(peaks.disturbed ? [`disturbed: ${peaks.disturbed}`] : []),
      ],
    },
    { title: 'runs', tables: [runsTable(examined)] },
    ...charts(swept, 't'),
    ...(phases.length + lacking.length > 0 ? [{ title: 'threads', lines: [...phases, ...lacking] }] : []),
    placementSection(judged) ?? { title: 'placement', lines: [onCpu(examined)] },
    { title: 'ceiling', lines: [ceiling] },
  ]
}

function workFacts({ bench, model, models, work, runs }: Examined): (readonly [string, string])[] {
  const { name, architecture, parameters } = model.figures
  const named = [name, architecture, `${threeDigits(parameters / 1e9)} B parameters`, size(model.bytes)]
  return [
    ['program', bench.path],
    ['model', `${model.path}${models > 1 ? `, of ${models} found (-m names another one)` : ''}`],
    ['', named.filter((fact) => fact !== null && fact !== '').join(', ')],
    [
      'work',
      `a prompt of ${plural(work.prompt, 'token')}, and ${work.decode} that are decoded; ${plural(runs.length, 'run')}`,
    ],
  ]
}

function machineFacts({ judged, memory }: Examined): (readonly [string, string])[] {
  const { run, machine } = judged
  const { limits } = run
  const facts: (readonly [string, string])[] = [
    ['CPU', run.cpu ?? ''],
    ...machineWords({ machine, threads: null }),
    ['memory', `${size(memory.total_bytes)}, ${size(memory.available_bytes)} available`],
    ['limits', limits ? limitsIn(limits).join(', ') : ''],
  ]
  return facts.filter(([, text]) => text !== '')
}

function runsTable({ runs }: Examined): StatsTable {
  const speed = (analysis: Analysis, phase: 'decode' | 'prefill') => some(speedOf(analysis, phase), threeDigits)
  return tableOf(runs, {}, [
    number('threads', ({ value }) => value),
    number('decode tok/s', ({ analysis }) => speed(analysis, 'decode')),
    number('prompt tok/s', ({ analysis }) => speed(analysis, 'prefill')),
    text('disturbed by', ({ analysis }) => [...new Set(disturbancesOf(analysis))].join(', ')),
  ])
}

/** Where nothing but the CPU computes. */
function onCpu({ judged: { placement } }: Examined): string {
  const devices = (placement?.devices ?? []).filter(({ description }) => /^(integrated )?GPU/.test(description))
  const found = devices.map(({ name, description }) => `${name} (${description})`).join(', ')
  return found === '' ? 'all on the CPU: the program found no other device' : `all on the CPU, though there is ${found}`
}
