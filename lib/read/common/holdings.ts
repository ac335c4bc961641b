/** An input's contents: {@link InputEvent.contents}, and the attribute of the trace. */
export function containing(contents: string) {
  return { contents, attributes: { holds: contents } }
}

/** `2 664`: with thousands separated, for people. */
export function grouped(value: number): string {
  // bounded: the digits of a number
  return String(value).replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** An input's contents as text: `3 689 kernels, 1 memory copy`, without counts of 0. Nouns are in the singular. */
export function contentsOf(counts: readonly (readonly [count: number, noun: string])[]): string {
  return counts
    .filter(([count]) => count > 0)
    .map(([count, noun]) => `${grouped(count)} ${count === 1 ? noun : pluralOf(noun)}`)
    .join(', ')
}

/** An input's contents as numbers of things, by their nouns in the singular; `none`: where all are 0. */
export function holding(counts: Readonly<Record<string, number>>, none: string) {
  const listed = Object.entries(counts).map(([noun, count]) => [count, noun] as const)
  return containing(contentsOf(listed) || none)
}

/** `copy` becomes `copies`. */
function pluralOf(noun: string): string {
  return `${noun.replace(/y$/, 'ie')}s`
}
