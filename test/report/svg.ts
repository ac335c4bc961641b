/** What a drawing of a report contains, read back from its SVG. */

/** A mark with a title: its attributes, and the lines of the title. */
export interface Mark {
  readonly tag: string
  readonly numbers: Readonly<Record<string, number>>
  readonly attributes: Readonly<Record<string, string>>
  readonly lines: readonly string[]
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
export const unescaped = (text: string) => text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => ENTITIES[name]!)

/** The figures of a page by their titles. */
export function figuresOf(page: string): Map<string, string> {
  const figures = page
    .split('<figure>')
    .slice(1)
    .map((text) => text.split('</figure>')[0]!)
  return new Map(figures.map((text) => [unescaped(/<h3>(.*?)<\/h3>/.exec(text)![1]!), text]))
}

/** Both drawings of a figure. */
export const drawingsOf = (figure: string) => figure.match(/<svg [\s\S]*?<\/svg>/g) ?? []

/** Marks of a drawing that have a title. */
export function marksOf(svg: string): Mark[] {
  return [...svg.matchAll(/<(\w+)([^<>]*)><title>([^<]*)<\/title><\/\w+>/g)].map(([, tag, text, title]) => {
    const attributes = Object.fromEntries(
      [...text!.matchAll(/ ([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key!, unescaped(value!)]),
    )
    const numbers = Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, Number(value)]))
    return { tag: tag!, attributes, numbers, lines: unescaped(title!).split('\n') }
  })
}

/** Rows of the first table of a text, its head first. */
export function tableOf(text: string): string[][] {
  const table = /<table>[\s\S]*?<\/table>/.exec(text)?.[0] ?? ''
  return [...table.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].map(([, row]) =>
    [...row!.matchAll(/<t[hd][^>]*>([^<]*)<\/t[hd]>/g)].map(([, cell]) => unescaped(cell!)),
  )
}
