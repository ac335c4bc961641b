/** Choices of one router that are kept: a log contains up to 13 000 operators of one worker in a row. */
const CHOICES_MAX = 4096
/** Experts that are distinguished: more than any model has (llama.cpp's LLAMA_MAX_EXPERTS is 512). */
const EXPERTS_MAX = 4096

/** Numbers of different experts that one router chose, for graph runs that are not complete yet. */
export class Choices {
  /** In order of time, from `first` to before `end`. Typed arrays, because there are many choices. */
  private times = new Float64Array(64)
  private counts = new Uint16Array(64)
  private first = 0
  private end = 0
  /** By id: is it part of the last choice? A long choice comes in several events. */
  private readonly isChosen = new Uint8Array(EXPERTS_MAX)

  /** Adds a choice, or a part of one; `atNs` is its time. */
  add(atNs: number, ids: Int32Array): void {
    const { isChosen } = this
    if (this.first === this.end || this.times[this.end - 1] !== atNs) {
      isChosen.fill(0)
      this.makeRoom()
      this.times[this.end] = atNs
      this.counts[this.end++] = 0
    }
    let count = this.counts[this.end - 1]!
    for (const id of ids) {
      if (isChosen[id] !== 0) continue // chosen already, or not an expert's id
      isChosen[id] = 1
      count++
    }
    this.counts[this.end - 1] = count
  }

  /** Removes all choices up to the end. Returns the number of experts of the last one since the start; 0 if there is none. */
  take(startNs: number, endNs: number): number {
    let found = 0
    for (; this.first < this.end && this.times[this.first]! <= endNs; this.first++) {
      if (this.times[this.first]! >= startNs) found = this.counts[this.first]!
    }
    return found
  }

  /** Number of experts of the last choice up to a time; 0 if there is none. Times do not go back; earlier choices are forgotten. */
  until(ns: number): number {
    while (this.first + 1 < this.end && this.times[this.first + 1]! <= ns) this.first++
    return this.first < this.end && this.times[this.first]! <= ns ? this.counts[this.first]! : 0
  }

  private makeRoom(): void {
    const { times, counts, end } = this
    if (end < times.length) return
    const from = Math.max(this.first, end - CHOICES_MAX + 1)
    if (2 * (end - from) > times.length) {
      this.times = new Float64Array(2 * times.length)
      this.counts = new Uint16Array(2 * times.length)
    }
    this.times.set(times.subarray(from, end))
    this.counts.set(counts.subarray(from, end))
    this.first = 0
    this.end = end - from
  }
}
