/** An input's contents: {@link InputEvent.contents}, and the attribute of the trace. */
export function containing(contents: string) {
  return { contents, attributes: { holds: contents } }
}

/** An input's contents as text: `3689 kernels, 1 memory copy`, without counts of 0. Nouns are in the singular. */
export function contentsOf(counts: readonly (readonly [count: number, noun: string])[]): string {
  return counts
    .filter(([count]) => count > 0)
    .map(([count, noun]) => `${count} ${count === 1 ? noun : pluralOf(noun)}`)
    .join(', ')
}

/** `copy` becomes `copies`. */
function pluralOf(noun: string): string {
  return `${noun.replace(/y$/, 'ie')}s`
}
