import { dirname } from 'node:path'
import { type Analysis, findings } from '../../lib/cli.ts'
import { benchmarksSection } from '../stats/benchmarks.ts'
import { fenced, inMarkdown, toText } from '../stats/section.ts'
import { sectionsOf } from '../stats/sections.ts'
import { plural } from '../units.ts'

/** Findings that the text names; all are in the statistics below it. */
const FINDINGS_MAX = 3
/** Rows of each table, and characters of a line, of the statistics. */
const TOP = 10
const WIDTH = 100
/** Options of llama.cpp whose value is text of the user, or a secret. */
const PRIVATE = /^(-p|--prompt|-sys|--system-prompt|-f|--file|-r|--reverse-prompt|--api-key|-hft|--hf-token)$/

/**
 * An Analysis without the host, folders, prompts and keys: what is public of a run. Its logs and models keep their names.
 */
export function redacted(analysis: Analysis): Analysis {
  const { run, inputs } = analysis
  const folders = [...inputs.map(({ name }) => name), ...run.model_files, run.ggml_library ?? '.']
    .map(dirname)
    .filter((folder) => folder !== '.')
  const text = [...new Set(folders)]
    .sort((a, b) => b.length - a.length)
    .reduce((text, folder) => text.replaceAll(JSON.stringify(`${folder}/`).slice(1, -1), ''), JSON.stringify(analysis))
  const copy = JSON.parse(text) as Analysis
  return { ...copy, run: { ...copy.run, host: null, command: run.command && commandOf(run.command) } }
}

/** A command line with the names of files only, without prompts and keys. */
function commandOf(command: string): string {
  const words = command.match(/"[^"]*"|'[^']*'|\S+/g) ?? []
  return words.map((word, i) => publicWord(word, words[i - 1])).join(' ')
}

function publicWord(word: string, before: string | undefined): string {
  const [option, value] = word.split('=', 2)
  if (value !== undefined && PRIVATE.test(option!)) return `${option}=…`
  if (before !== undefined && PRIVATE.test(before)) return '…'
  return word.replace(/^(--?[\w-]+=)?.*[\\/](?=[^\\/]+$)/, '$1')
}

/** A text for an issue of llama.cpp, with the parts of its form. `attached`: the name of the file with all figures. */
export function issueText(analysis: Analysis, attached: string | undefined): string {
  const { run } = analysis
  const found = findings(analysis).slice(0, FINDINGS_MAX)
  const known = (value: string | number | null | undefined) => (value ? inMarkdown(`${value}`) : '_not recorded_')
  const version = [run.version && `llama.cpp ${run.version}`, run.build && `ggml ${run.build}`]
    .filter(Boolean)
    .join(', ')
  const mix = (run.weights ?? []).map(({ type }) => type).join(', ')
  const hardware = [run.cpu, run.cpus && `${run.cpus} CPUs`, run.workers && plural(run.workers, 'worker')].filter(
    Boolean,
  )
  const statistics = toText(
    sectionsOf(analysis, {
      top: TOP,
      calls: false,
      experts: false,
      by: ['role', 'op', 'phase'],
      sort: 'wall',
      isPublic: true,
    }),
    WIDTH,
  )
  const part = (title: string, text: string) => [`### ${title}`, '', text, '']
  return [
    ...part('Name and Version', known(version)),
    ...part('Operating systems', known(run.kernel && `Linux ${run.kernel}`)),
    ...part('GGML backends', known(backendsOf(analysis).join(', '))),
    ...part('Hardware', known(hardware.join(', '))),
    ...part('Models', [known(run.model), mix && inMarkdown(`weights: ${mix}`)].filter(Boolean).join('; ')),
    ...part('Command line', run.command ? fenced([run.command]).join('\n') : known(null)),
    ...part(
      'Problem description & steps to reproduce',
      [
        '_What did you expect, and what happened?_',
        '',
        ...[analysis.verdict.sentence, ...found.map(({ sentence }) => sentence)].map(
          (sentence) => `- ${inMarkdown(sentence)}`,
        ),
        ...measuredByProgram(analysis),
      ].join('\n'),
    ),
    ...part('First Bad Commit', '_Not known. `ggml2perfetto compare` of two builds finds whether one is slower._'),
    ...part(
      'Relevant log output',
      [
        ...(attached === undefined
          ? []
          : [`All figures are in the attached ${attached}: \`ggml2perfetto stats ${attached}\` prints them.`, '']),
        '<details><summary>Statistics</summary>',
        '',
        ...fenced(statistics),
        '',
        '</details>',
      ].join('\n'),
    ),
  ]
    .join('\n')
    .trimEnd()
}

/** Backends that computed; those that llama-bench names, where no graph was recorded. */
const backendsOf = ({ run, benchmarks }: Analysis): readonly string[] =>
  run.backends.length > 0
    ? run.backends
    : [
        ...new Set(
          benchmarks.flatMap(({ parameters }) => (parameters['backends'] ? [`${parameters['backends']}`] : [])),
        ),
      ]

/** The table of all tests of llama-bench: the numbers that readers of an issue know, so they are not folded. */
function measuredByProgram(analysis: Analysis): string[] {
  const section = benchmarksSection(analysis)
  if (!section) return []
  const lines = toText([{ title: 'measured by the program itself', tables: section.tables ?? [] }], WIDTH)
  return ['', ...fenced(lines)]
}
