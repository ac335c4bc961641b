import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closest, packageFolder } from '../lib/cli.ts'
import { aligned } from './terminal.ts'

/** What `help` prints after the topics. */
const WORDS = `Words, as llama.cpp uses them:
  call     one call of llama_decode, or one step of vLLM or SGLang; numbered from 0,
           except warm-up calls
  prefill  calls that process the prompt
  decode   calls that make one token of each sequence
  TTFT     time to first token: from the start of the first call to the end of the
           last call before a decode
  TPOT     time per output token: mean time from the end of one call to the end of
           the next decode call
  tok/s    tokens of all sequences per second: TPOT × tok/s = sequences decoded at once
  graph    a ggml graph; one compute of it is a run
  op       the operation of a node, such as MUL_MAT
  worker   a thread of ggml's pool; all workers share each op, then wait for each
           other (barrier)

Exit codes:
  0        success. A damaged log is read to its end, and its issues are printed
  1        an error, such as a log that contains nothing to draw
  compare  with --fail-above: 0 not slower by more, 2 slower, 3 not certain
  record   the exit code of the program; 1 if the program succeeded, but its log is
           incomplete (a full disk); 127: there is no such program; 126: it cannot
           be run`

/** Pages about the project itself. */
const OF_PROJECT = ['README', 'architecture', 'exports', 'releasing', 'benchmarks', 'dependencies']

/** The folder of pages that are looked up. */
const REFERENCE = 'reference'

const folder = async () => join(await packageFolder(), 'docs')

/** The names of the pages of the docs, which this package contains: guides, then the reference. One name in both is the guide's. */
export async function topics(): Promise<string[]> {
  const pages = [...(await readdir(await folder())), ...(await readdir(join(await folder(), REFERENCE)))]
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -3))
  return [...new Set(pages)].filter((name) => !OF_PROJECT.includes(name)).sort()
}

/** A page of the docs; undefined if there is none of this name. */
export async function pageOf(topic: string): Promise<string | undefined> {
  const name = topic.replace(/^docs\/(?:reference\/)?/, '').replace(/\.md$/, '')
  if (!(await topics()).includes(name)) return undefined
  const guide = await readFile(join(await folder(), `${name}.md`), 'utf8').catch(() => undefined)
  return (guide ?? (await readFile(join(await folder(), REFERENCE, `${name}.md`), 'utf8'))).trimEnd()
}

/** The topics with their titles, and the words. */
export async function topicText(): Promise<string> {
  const pages: [string, string][] = []
  for (const name of await topics()) {
    const [title = ''] = (await pageOf(name))!.split('\n')
    pages.push([name, title.replace(/^# /, '').replaceAll('`', '')])
  }
  return ['', 'Topics: ggml2perfetto help <topic>', ...aligned(pages), '', WORDS].join('\n')
}

/** The message of an unknown topic. */
export async function noTopic(topic: string, commands: readonly string[]): Promise<string> {
  const meant = closest(topic, [...commands, ...(await topics())])
  const hint = meant === undefined ? 'ggml2perfetto help lists all' : `did you mean ggml2perfetto help ${meant}?`
  return `${topic}: no such command, and no such topic\nhint: ${hint}`
}
