/**
 * Finds regular expressions that may take a time that grows with the square of the text: two loops that match the same text one after
 * the other, the search for a beginning being a loop, too, with something required after them. Loops of a bounded number, and what a
 * lookbehind or a `\b` excludes, are not known to it.
 */

/** Characters that stand for all, and the end of the text. */
const CHARACTERS = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  '\u00e9',
  '\u00a0',
  '\u20ac',
]
const END = CHARACTERS.length
const ANY = CHARACTERS.map((_, i) => i)
const LINE_ENDS = [CHARACTERS.indexOf('\n'), CHARACTERS.indexOf('\r')]

interface State {
  /** Next states without a character. */
  readonly free: number[]
  readonly edges: { readonly on: ReadonlySet<number>; readonly to: number }[]
}

/** Copies of what is repeated a known number of times. */
const COPIES_MAX = 2

/** Thompson's automaton of an expression; state 0 is the beginning, 1 the match. */
class Automaton {
  readonly states: State[] = []
  private at = 0

  /** `isFloating`: a match is searched after the beginning of the text; else at it. */
  constructor(
    private readonly source: string,
    private readonly flags: string,
    private readonly isFloating: boolean,
  ) {
    const [start, match] = [this.state(), this.state()]
    const [from, to] = this.alternatives()
    if (this.at < source.length) throw new Error(`unknown syntax at ${source.slice(this.at)}`)
    this.free(to, match)
    this.free(start, from)
    if (isFloating && !matchesAlways(this.states, closures(this.states), from)) this.edge(start, ANY, start)
  }

  private state(): number {
    return this.states.push({ free: [], edges: [] }) - 1
  }

  private free(from: number, to: number): void {
    this.states[from]!.free.push(to)
  }

  private edge(from: number, on: readonly number[], to: number): void {
    this.states[from]!.edges.push({ on: new Set(on), to })
  }

  private takes(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  private alternatives(): [number, number] {
    const [from, to] = [this.state(), this.state()]
    do {
      const [start, end] = this.sequence()
      this.free(from, start)
      this.free(end, to)
    } while (this.takes('|'))
    return [from, to]
  }

  private sequence(): [number, number] {
    const from = this.state()
    let to = from
    while (this.at < this.source.length && !'|)'.includes(this.source[this.at]!)) {
      const start = this.at
      let [first, last] = this.atom()
      const atomEnd = this.at
      const bounds = this.quantifier()
      if (bounds) {
        const end = this.at
        const copies: [number, number][] = [[first, last]]
        const count = Math.max(
          Math.min(bounds[0], COPIES_MAX),
          bounds[1] === Infinity ? 1 : Math.min(bounds[1], COPIES_MAX),
        )
        for (let i = 1; i < count; i++) {
          this.at = start
          copies.push(this.atom())
          if (this.at !== atomEnd) throw new Error('an atom of two lengths')
        }
        this.at = end
        ;[first, last] = this.repeated(copies, bounds)
      }
      this.free(to, first)
      to = last
    }
    return [from, to]
  }

  private repeated(copies: readonly [number, number][], [min, max]: readonly [number, number]): [number, number] {
    const [first, last] = [this.state(), this.state()]
    let before = first
    for (const [i, [start, end]] of copies.entries()) {
      if (i >= min) this.free(before, last)
      this.free(before, start)
      before = end
    }
    this.free(before, last)
    if (max === Infinity) this.free(before, copies.at(-1)![0])
    return [first, last]
  }

  private quantifier(): readonly [number, number] | undefined {
    const [text, sign, min, comma, max] = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/.exec(this.source.slice(this.at)) ?? []
    if (text === undefined) return undefined
    this.at += text.length
    if (sign) return sign === '*' ? [0, Infinity] : sign === '+' ? [1, Infinity] : [0, 1]
    return [Number(min), comma === '' ? Number(min) : max === '' ? Infinity : Number(max)]
  }

  private atom(): [number, number] {
    const [from, to] = [this.state(), this.state()]
    if (this.takes('^')) {
      if (!this.isFloating) this.free(from, to)
      else if (this.flags.includes('m')) this.edge(from, LINE_ENDS, to)
    } else if (this.takes('$')) {
      // Whatever is read after the end is no matter.
      this.edge(from, [END], to)
      if (this.flags.includes('m')) this.edge(from, LINE_ENDS, to)
    } else if (this.takes('\\b') || this.takes('\\B')) this.free(from, to)
    else if (this.source.startsWith('(?=', this.at) || this.source.startsWith('(?!', this.at)) {
      // What it looks at may be read in vain; where it has to be there, the expression may fail here.
      const isWanted = this.takes('(?=') || !this.takes('(?!')
      this.free(from, this.alternatives()[0])
      if (isWanted) this.edge(from, ANY, to)
      else this.free(from, to)
      this.takes(')')
    } else if (this.takes('(?<=')) {
      this.alternatives()
      this.free(from, to)
      this.takes(')')
    } else if (this.takes('(?<!')) {
      // The character before: at the begin of an expression, where the search for a beginning reads it. More than one exclude nothing here.
      const excluded = new Set(this.characters())
      if (this.takes(')')) {
        this.edge(
          from,
          ANY.filter((i) => !excluded.has(i)),
          to,
        )
        if (!this.isFloating) this.free(from, to)
      } else {
        this.alternatives()
        this.takes(')')
        this.free(from, to)
      }
    } else if (this.takes('(')) {
      this.at += /^(?:\?:|\?<\w+>)?/.exec(this.source.slice(this.at))![0].length
      const [start, end] = this.alternatives()
      this.free(from, start)
      this.free(end, to)
      this.takes(')')
    } else this.edge(from, this.characters(), to)
    return [from, to]
  }

  /** The characters of a class, an escape or a character. */
  private characters(): number[] {
    const rest = this.source.slice(this.at)
    const [text] =
      /^(?:\[(?:[^\]\\]|\\[\s\S])*\]|\\(?:u\{[^}]*\}|u[\da-f]{4}|x[\da-f]{2}|[pPk](?:\{[^}]*\}|<\w+>)|[\s\S])|[\s\S])/i.exec(
        rest,
      )!
    this.at += text.length
    if (/^\\(?:[1-9]|k<)/.test(text)) return ANY
    const one = new RegExp(`^${text}$`, this.flags.replace(/[gmyd]/g, ''))
    return ANY.filter((i) => one.test(CHARACTERS[i]!))
  }
}

/** The states that are reached without a character. */
function closures(states: readonly State[]): ReadonlySet<number>[] {
  return states.map((_, state) => {
    const reached = new Set([state])
    for (const at of reached) for (const to of states[at]!.free) reached.add(to)
    return reached
  })
}

/** Does every text match from this state on? Then nothing is tried again. */
function matchesAlways(states: readonly State[], closed: readonly ReadonlySet<number>[], from: number): boolean {
  const seen = new Set<string>()
  const queue = [[...closed[from]!]]
  for (const at of queue) {
    if (at.includes(1)) continue
    for (const letter of [...ANY, END]) {
      const reached = new Set<number>()
      for (const state of at)
        for (const { on, to } of states[state]!.edges) if (on.has(letter)) for (const of of closed[to]!) reached.add(of)
      if (reached.size === 0 || (letter === END && !reached.has(1))) return false
      const key = [...reached].sort((a, b) => a - b).join()
      if (!seen.has(key)) queue.push([...reached])
      seen.add(key)
    }
    if (queue.length > 50) return false
  }
  return true
}

/** A character that two loops of the expression match, one after the other; undefined: it takes a linear time, as far as is known. */
export function squareOf(source: string, flags: string): string | undefined {
  const found = squareIn(new Automaton(source, flags, false).states)
  return found ?? (flags.includes('y') ? undefined : squareIn(new Automaton(source, flags, true).states))
}

function squareIn(states: readonly State[]): string | undefined {
  const closed = closures(states)
  // Characters that no edge distinguishes are one.
  const kinds = new Map(
    ANY.map((i) => [states.map(({ edges }) => edges.map(({ on }) => +on.has(i)).join('')).join(), i]),
  )
  const letters = [...kinds.values()]
  const next = states.map((_, state) => {
    // What matches is not tried again.
    const from = matchesAlways(states, closed, state) ? [] : [...closed[state]!]
    return letters.map((letter) => {
      return [...new Set(from.flatMap((at) => states[at]!.edges.flatMap(({ on, to }) => (on.has(letter) ? [to] : []))))]
    })
  })
  const after = states.map((_, state) => {
    const reached = new Set(next[state]!.flat())
    for (const at of reached) for (const to of next[at]!.flat()) reached.add(to)
    return reached
  })
  const loops = states.flatMap((_, state) => (after[state]!.has(state) ? [state] : []))
  for (const p of loops) {
    for (const q of loops) {
      const letter = p !== q && after[p]!.has(q) ? commonWord(next, p, q) : undefined
      if (letter !== undefined) return CHARACTERS[letters[letter]!]
    }
  }
  return undefined
}

/** The last letter of a word that leads from p to p, from p to q, and from q to q. */
function commonWord(next: readonly (readonly (readonly number[])[])[], p: number, q: number): number | undefined {
  const seen = new Set<string>()
  const queue: [number, number, number][] = [[p, p, q]]
  for (const [a, b, c] of queue) {
    for (const [letter, to] of next[a]!.entries()) {
      for (const x of to)
        for (const y of next[b]![letter]!)
          for (const z of next[c]![letter]!) {
            if (x === p && y === q && z === q) return letter
            const key = `${x} ${y} ${z}`
            if (seen.has(key)) continue
            seen.add(key)
            queue.push([x, y, z])
          }
    }
    if (queue.length > 20_000) return undefined
  }
  return undefined
}
