import type { Format } from './format.ts'

/** Lines that may be ahead of a log, such as what its program or a shell printed first. */
const LINES_MAX = 64
/** What is written before each line of a log: a mark of a quotation, a line's number, a time with its date. */
// bounded: the head of an input
const BEFORE_LINES = /^(?:[>|] ?|\d+[:\t] ?|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\S*\]? )/gm
/** A name of a tool, a file or a library in a title: with a capital, a digit or a sign within. */
// bounded: a word of a title
const NAME = /^[A-Za-z]+(?:[A-Z\d_.-][\w.-]*)$/
const NAME_MIN = 4

/**
 * The format that an input resembles, though no format recognises it: by its lines after the first ones, or without what is before each; else
 * by the names of tools and files in it. Undefined where it resembles none.
 */
export function nearestFormat(head: Uint8Array, formats: readonly Format[]): Format | undefined {
  if (head.includes(0)) return undefined // no text
  const text = new TextDecoder().decode(head)
  return byLines(text, formats) ?? byNames(text, formats)
}

function byLines(text: string, formats: readonly Format[]): Format | undefined {
  for (const variant of [text, text.replace(BEFORE_LINES, '')]) {
    const lines = variant.split('\n')
    for (let first = variant === text ? 1 : 0; first < Math.min(lines.length, LINES_MAX); first++) {
      const rest = new TextEncoder().encode(lines.slice(first).join('\n'))
      const format = rest.length > 0 ? formats.find((known) => known.sniff(rest)) : undefined
      if (format) return format
    }
  }
  return undefined
}

function byNames(text: string, formats: readonly Format[]): Format | undefined {
  const words = new Set(wordsOf(text))
  const names = formats.map(namesOf)
  const scores = names.map((fields) => {
    const found = [...fields].filter((name) => words.has(name))
    return found.reduce((sum, name) => sum + 1 / names.filter((other) => other.has(name)).length, 0)
  })
  const best = Math.max(...scores)
  return best > 0 ? formats[scores.indexOf(best)] : undefined
}

/** Names in the title of a format, and its own. */
function namesOf({ name, title }: Format): Set<string> {
  // bounded: a word of a title
  const inTitle = title.split(/[\s,:;()]+/).map((word) => word.replace(/'s$|[.']+$/, ''))
  const all = [name, ...inTitle.filter((word) => NAME.test(word))]
  return new Set(all.filter((word) => word.length >= NAME_MIN).map((word) => word.toLowerCase()))
}

// bounded: the head of an input
const wordsOf = (text: string) => text.toLowerCase().match(/[a-z\d][\w.-]*\w/g) ?? []
