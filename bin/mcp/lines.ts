/** Bytes of a line of input, at most: what exceeds them is not kept. */
export const LINE_BYTES = 10 << 20
/** Bytes of an outline, and of a text in it. */
const [OUTLINE_BYTES, OUTLINE_TEXT_BYTES] = [4096, 512]

/** What replaces the rest of a long text in an outline, and invalid UTF-8. */
export const CUT = '\ufffd'

const [LINE_FEED, QUOTE, BACKSLASH] = [0x0a, 0x22, 0x5c]
const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d]

/** A line of input, without its line feed. */
export interface Line {
  /** Undefined if it has more than {@link LINE_BYTES}. */
  readonly bytes: Uint8Array | undefined
  readonly length: number
  /** Levels of lists and objects, as far as it is JSON. */
  readonly levels: number
  /** The JSON of its first level: what is in lists and objects within it is left out, and the rest of long texts. Undefined if that is long. */
  readonly outline: string | undefined
}

/** Input as lines, however it is cut into pieces. Takes the memory of one line. */
export class Lines {
  #bytes = new Uint8Array(1 << 16)
  #length = 0
  #outline = new Outline()

  /** What is behind the last line feed. */
  end(): Line {
    const { levels, text } = this.#outline
    const length = this.#length
    const bytes = length <= LINE_BYTES ? this.#bytes.slice(0, length) : undefined
    this.#outline = new Outline()
    this.#length = 0
    return { bytes, length, levels, outline: text }
  }

  /** The lines that end in a piece. */
  *add(piece: Uint8Array): Generator<Line> {
    let start = 0
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, start)) {
      this.#take(piece.subarray(start, end))
      yield this.end()
      start = end + 1
    }
    this.#take(piece.subarray(start))
  }

  #take(part: Uint8Array): void {
    const before = this.#length
    this.#outline.add(part)
    this.#length += part.length
    if (this.#length > LINE_BYTES) return
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(Math.max(this.#length, 2 * this.#bytes.length), LINE_BYTES))
      larger.set(this.#bytes.subarray(0, before))
      this.#bytes = larger
    }
    this.#bytes.set(part, before)
  }
}

/** Finds the outline of a line without keeping the line. Calls a function for the bytes of the outline only: a line may have any length. */
class Outline {
  levels = 0
  #level = 0
  #isText = false
  #isEscaped = false
  #textBytes = 0
  readonly #kept = new Uint8Array(OUTLINE_BYTES)
  #length = 0

  add(bytes: Uint8Array): void {
    let [level, isText, isEscaped] = [this.#level, this.#isText, this.#isEscaped]
    for (const byte of bytes) {
      if (isText) {
        isText = byte !== QUOTE || isEscaped
        isEscaped = byte === BACKSLASH && !isEscaped
        if (level <= 1) this.#keepText(byte, isText)
      } else {
        const isOpening = byte === OPEN_OBJECT || byte === OPEN_LIST
        const isClosing = byte === CLOSE_OBJECT || byte === CLOSE_LIST
        // Of what is left out, the brackets remain.
        if (level <= 1 || (level === 2 && isClosing)) this.#keep(byte)
        if (isOpening) this.levels = Math.max(this.levels, ++level)
        else if (isClosing) level--
        else if (byte === QUOTE) {
          isText = true
          this.#textBytes = 0
        }
      }
    }
    ;[this.#level, this.#isText, this.#isEscaped] = [level, isText, isEscaped]
  }

  /** Undefined if it is long. */
  get text(): string | undefined {
    return this.#length < OUTLINE_BYTES ? new TextDecoder().decode(this.#kept.subarray(0, this.#length)) : undefined
  }

  /** Keeps the beginning of a long text, with {@link CUT} behind it. */
  #keepText(byte: number, isText: boolean): void {
    if (!isText || this.#textBytes < OUTLINE_TEXT_BYTES) this.#keep(byte)
    else if (this.#textBytes === OUTLINE_TEXT_BYTES) for (const byte of new TextEncoder().encode(CUT)) this.#keep(byte)
    this.#textBytes++
  }

  #keep(byte: number): void {
    if (this.#length < OUTLINE_BYTES) this.#kept[this.#length++] = byte
  }
}
