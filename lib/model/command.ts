/** A program that runs another one: its options whose value is the next word, and the words of its own before that program. */
interface Wrapper {
  readonly valued: readonly string[]
  readonly words?: number
}

/** From the manuals of coreutils, util-linux, numactl, sudo and strace. */
const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map(
  Object.entries<Wrapper>({
    chrt: { valued: ['-T', '-P', '-D'], words: 1 },
    env: { valued: ['-u', '-C', '-S'] },
    gdb: { valued: ['-ex', '-x'] },
    ionice: { valued: ['-c', '-n'] },
    nice: { valued: ['-n'] },
    nohup: { valued: [] },
    numactl: { valued: ['-i', '-w', '-p', '-P', '-m', '-N', '-C', '-l'] },
    setsid: { valued: [] },
    stdbuf: { valued: ['-i', '-o', '-e'] },
    strace: { valued: ['-e', '-o', '-p', '-s', '-u', '-E', '-a', '-b', '-I', '-O', '-P', '-S', '-U', '-X'] },
    sudo: { valued: ['-u', '-g', '-p', '-C', '-D', '-R', '-T', '-h'] },
    taskset: { valued: [], words: 1 },
    time: { valued: ['-f', '-o'] },
    timeout: { valued: ['-k', '-s'], words: 1 },
  }),
)
/** Interpreters whose `-m` is a module. */
const PYTHON = /^(?:python|pypy|pythonw|uv-python)[\d.]*(?:\.exe)?$/
const PYTHON_VALUED: readonly string[] = ['-W', '-X', '--check-hash-based-pycs']
const ASSIGNMENT = /^[A-Za-z_]\w*=/
const GGUF = /\.gguf$/i
/** A word, in which quotes may enclose spaces. */
const WORD = /(?:"[^"]*"|'[^']*'|[^\s"']|["'])+/g

/**
 * The files of the models in a command line, as programs of llama.cpp and its bindings take them: `--model FILE`, `--model=FILE`, `-m FILE`.
 * Options of programs that run others (`numactl -m 0`) and of interpreters (`python3 -m module`) are none. All of them, as a benchmark
 * takes several. Recorded command lines have lost the borders of their words: a file with spaces is known by its end, `.gguf`.
 */
export function modelsOfCommand(command: string): string[] {
  const words = argumentsOf(command.match(WORD) ?? [])
  const [long, short]: [string[], string[]] = [[], []]
  for (const [i, word] of words.entries()) {
    const [, option, value] = /^(--model|-m)(?:=(.*))?$/s.exec(word) ?? []
    if (option === undefined) continue
    const path = value === undefined ? pathIn(words.slice(i + 1)) : pathIn([value, ...words.slice(i + 1)])
    if (path !== undefined) (option === '-m' ? short : long).push(...path)
  }
  const all = long.length > 0 ? long : short
  const files = all.filter((path) => GGUF.test(path))
  return [...new Set(files.length > 0 ? files : all)]
}

/** The words after the program that is run, and after the module or script of an interpreter. */
function argumentsOf(words: readonly string[]): readonly string[] {
  let at = 0
  for (let wrapper = wrapperAt(words, at); wrapper; wrapper = wrapperAt(words, at)) {
    at = afterOptions(words, at + 1, wrapper.valued)
    for (let left = wrapper.words ?? 0; left > 0; left--) at++
    while (ASSIGNMENT.test(words[at] ?? '')) at++
  }
  while (ASSIGNMENT.test(words[at] ?? '')) at++
  return words.slice(PYTHON.test(nameIn(words[at])) ? afterPython(words, at + 1) : at + 1)
}

const wrapperAt = (words: readonly string[], at: number) => WRAPPERS.get(nameIn(words[at]))

/** The place after the options of a wrapper. */
function afterOptions(words: readonly string[], from: number, valued: readonly string[]): number {
  let at = from
  for (; at < words.length && words[at]!.startsWith('-'); at++) {
    if (words[at] === '--') return at + 1
    if (valued.includes(words[at]!)) at++
  }
  return at
}

/** The place after `-m module`, `-c text` or the script. */
function afterPython(words: readonly string[], from: number): number {
  for (let at = from; at < words.length; at++) {
    const word = words[at]!
    if (/^-[a-zA-Z]*[mc]$/.test(word) && !word.startsWith('--')) return at + 2
    if (/^-[mc]./.test(word) || !word.startsWith('-')) return at + 1
    if (PYTHON_VALUED.includes(word)) at++
  }
  return words.length
}

const nameIn = (word: string | undefined) => bare(word ?? '').replace(/^.*[/\\]/, '')
// bounded: a quote without its pair is there once
const bare = (word: string) => word.replace(/(["'])(.*?)\1/gs, '$2')

/** The value that begins with the first of these words: several files are separated by commas. Undefined: it is no file. */
function pathIn(words: readonly string[]): string[] | undefined {
  const [first] = words
  if (first === undefined || first === '' || (first.startsWith('-') && !GGUF.test(first))) return undefined
  const end = words.findIndex((word) => word.startsWith('-'))
  const value = words.slice(0, end < 0 ? words.length : Math.max(1, end))
  const last = value.findIndex((word) => GGUF.test(bare(word)))
  const path = bare(value.slice(0, Math.max(0, last) + 1).join(' '))
  return /\.gguf,/i.test(path) ? path.split(',').filter(Boolean) : [path]
}

/** The name of a model's file, without its folder and `.gguf`. */
export const modelNameOf = (path: string) => path.replace(/^.*[/\\]/, '').replace(GGUF, '')
