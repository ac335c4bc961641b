/**
 * Interns texts: each distinct text gets one small integer, which is used everywhere between reader and writer.
 * Id 0 is the empty text and means "no name".
 */
export class Names {
  private readonly texts: string[] = ['']
  private readonly ids = new Map<string, number>([['', 0]])

  /** The id of `text`, new or known. */
  id(text: string): number {
    const known = this.ids.get(text)
    if (known !== undefined) return known
    const id = this.texts.length
    this.texts.push(text)
    this.ids.set(text, id)
    return id
  }

  /** The id of `text` if it is known. */
  known(text: string): number | undefined {
    return this.ids.get(text)
  }

  /** Number of texts. */
  get size(): number {
    return this.texts.length
  }

  /** The text of an id that {@link id} returned. */
  text(id: number): string {
    return this.texts[id] ?? ''
  }
}
