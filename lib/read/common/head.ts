const decoder = new TextDecoder()

/** The text of an input's first bytes. */
export const headText = (head: Uint8Array): string => decoder.decode(head)

/** Is one of the first lines of an input such a line? `count`: of how many, by default of all that are seen. */
export function hasLine(head: Uint8Array, isSuch: (line: string, index: number) => boolean, count?: number): boolean {
  return headText(head).split('\n', count).some(isSuch)
}

/** The first lines of an input, without the last one, which may be cut. */
export const wholeLines = (head: Uint8Array): string[] => headText(head).split(/\r?\n/).slice(0, -1)
