/**
 * Interns texts: each distinct text gets one small integer, and everything between reader and writer carries that.
 * Id 0 is the empty text and stands for "no name".
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

  /** The text behind an id that {@link id} returned. */
  text(id: number): string {
    return this.texts[id] ?? ''
  }
}
