import type { Input, TraceEvent } from '../../lib/index.ts'

/** A request that the emulated server gets. */
export interface Asked {
  readonly prompt: number
  readonly reused: number
  readonly generate: number
  /** Drafted tokens of each step; accepted are at most so many. */
  readonly drafts: number
  readonly slot: number
  /** Time between it and the request before, in steps of the server. */
  readonly afterSteps: number
}

/** What it did, as its own timings state it. */
export interface Answered {
  readonly task: number
  readonly slot: number
  readonly postNs: number
  /** The server looked for its slot, which was busy; undefined: it was free. */
  readonly deferNs: number | undefined
  readonly launchNs: number
  readonly sentNs: number
  readonly firstTokenNs: number
  readonly reused: number
  processed: number
  generated: number
  drafted: number
  accepted: number
}

interface Slot {
  answer?: { -readonly [Key in keyof Answered]: Answered[Key] } | undefined
  asked?: Asked
  left: number
  position: number
}

const [TARGET, DRAFT, MAIN, HTTP] = [0x1000, 0x2000, 100, 200]

/** Which events the log has: those of tasks, functions, changes of sequences. */
export interface Recorded {
  readonly tasks: boolean
  readonly functions: boolean
  /** Where tasks wait for a slot. */
  readonly defers?: boolean
}

/**
 * Emulates the loop of llama-server (tools/server/server-context.cpp, update_slots): each step puts the next tokens of all slots into a
 * batch, up to its size, decodes it, samples for each slot whose output is in it, and releases slots that are done.
 */
export class Server {
  readonly events: TraceEvent[] = []
  readonly answers: Answered[] = []
  private ns = 1000
  private call = 0
  private task = 0
  private readonly slots: Slot[]
  private readonly waiting: { asked: Asked; task: number; postNs: number; deferNs: number | undefined }[] = []

  constructor(
    slots: number,
    private readonly batch: number,
    private readonly recorded: Recorded = { tasks: true, functions: true },
  ) {
    this.slots = Array.from({ length: slots }, () => ({ left: 0, position: 0 }))
  }

  /** Runs until all requests are answered. */
  run(asked: readonly Asked[]): this {
    for (const one of asked) {
      for (let i = 0; i < one.afterSteps; i++) this.step()
      const [task, postNs] = [this.task++, this.pass(10)]
      this.add({ kind: 'task', what: 'post', atNs: postNs, tid: HTTP, task, slot: -1 })
      this.waiting.push({ asked: one, task, postNs, deferNs: undefined })
    }
    while (this.waiting.length > 0 || this.slots.some(({ answer }) => answer)) this.step()
    return this
  }

  private step(): void {
    this.launch()
    const spans: { sequence: number; position: number; tokens: number; isPrompt: boolean; drafted: number }[] = []
    let room = this.batch
    for (const isPrompt of [false, true]) {
      this.slots.forEach((slot, sequence) => {
        const { answer, asked, left, position } = slot
        if (!answer || !asked || room <= 0 || left > 0 !== isPrompt) return
        const wanted = asked.generate - answer.generated
        const drafted = isPrompt ? 0 : Math.min(asked.drafts, Math.max(wanted - 1, 0), room - 1)
        const tokens = isPrompt ? Math.min(left, room) : 1 + drafted
        room -= tokens
        spans.push({ sequence, position, tokens, isPrompt, drafted })
      })
    }
    if (spans.length > 0) this.decode(spans)
  }

  private launch(): void {
    for (const [number, slot] of this.slots.entries()) {
      const at = slot.answer ? -1 : this.waiting.findIndex(({ asked }) => asked.slot === number)
      if (at < 0) continue
      const [{ asked, task, postNs, deferNs }] = this.waiting.splice(at, 1) as [(typeof this.waiting)[number]]
      const reused = Math.min(asked.reused, slot.position, asked.prompt - 1)
      const launchNs = this.pass(20)
      this.add({ kind: 'task', what: 'launch', atNs: launchNs, tid: MAIN, task, slot: number })
      const answer = { task, slot: number, postNs, deferNs, launchNs, sentNs: 0, firstTokenNs: 0, reused }
      slot.answer = { ...answer, processed: 0, generated: 0, drafted: 0, accepted: 0 }
      slot.asked = asked
      slot.left = asked.prompt - reused
      slot.position = reused
      this.remove(number, reused)
    }
    if (!this.recorded.defers) return
    for (const one of this.waiting) {
      if (one.deferNs !== undefined) continue
      one.deferNs = this.pass(2)
      this.add({ kind: 'task', what: 'defer', atNs: one.deferNs, tid: MAIN, task: one.task, slot: -1 })
    }
  }

  private decode(spans: { sequence: number; position: number; tokens: number; isPrompt: boolean; drafted: number }[]) {
    if (spans.some(({ drafted }) => drafted > 0)) this.drafts(spans)
    const tokens = spans.reduce((sum, span) => sum + span.tokens, 0)
    const startNs = this.pass(30)
    const batch = {
      ...({ function: 'llama_decode', isLeftOut: false, result: 0, context: TARGET } as const),
      areAllOutput: tokens > 1 && spans.every(({ isPrompt }) => !isPrompt),
      spans: spans.map(({ sequence, position, tokens }) => ({ sequence, position, tokens })),
    }
    const phase = spans.every(({ isPrompt }) => isPrompt)
      ? 'prefill'
      : spans.some(({ isPrompt }) => isPrompt)
        ? 'mixed'
        : 'decode'
    const call = this.call++
    this.events.push({
      kind: 'token',
      call,
      phase,
      tokens,
      startNs,
      endNs: this.pass(1000 + 100 * tokens),
      tid: MAIN,
      inferred: 0,
      batch,
    })
    let place = 0
    for (const span of spans) {
      const slot = this.slots[span.sequence]!
      const first = place
      place += span.tokens
      slot.position += span.tokens
      if (span.isPrompt) {
        slot.left -= span.tokens
        slot.answer!.processed += span.tokens
        if (slot.left > 0) continue
      }
      this.sample(slot, span.sequence, first, place - 1, span)
    }
  }

  private sample(
    slot: Slot,
    sequence: number,
    first: number,
    last: number,
    { drafted, position, isPrompt }: { drafted: number; position: number; isPrompt: boolean },
  ): void {
    const { answer, asked } = slot as Slot & { answer: object; asked: object }
    const accepted = drafted === 0 ? 0 : (answer.generated * 7 + sequence) % (drafted + 1)
    for (let i = 0; i <= accepted; i++) {
      this.function('sample', 5, isPrompt || drafted === 0 ? last : first + i)
      if (answer.generated === 0) answer.firstTokenNs = this.ns
      this.function('accept', 1)
    }
    if (drafted > 0) {
      this.function('accept-draft', 1, -1, sequence, accepted)
      slot.position = position + 1 + accepted
      this.remove(sequence, slot.position)
    }
    answer.generated += 1 + accepted
    answer.drafted += drafted
    answer.accepted += accepted
    for (let i = 0; i <= accepted; i++) this.function('token-to-piece', 2)
    if (answer.generated < asked.generate) return
    const { processed: processedTokens, generated: generatedTokens, drafted: draftedTokens } = answer
    const values = { processedTokens, generatedTokens, draftedTokens, acceptedTokens: answer.accepted }
    const timed = { kind: 'task', what: 'timings', tid: MAIN, task: answer.task, slot: sequence, values } as const
    if (!this.recorded.functions) this.add({ ...timed, atNs: this.pass(1) })
    answer.sentNs = this.pass(5)
    this.add({ kind: 'task', what: 'send', atNs: answer.sentNs, tid: MAIN, task: answer.task, slot: -1 })
    this.add({ kind: 'task', what: 'release', atNs: this.pass(5), tid: MAIN, task: answer.task, slot: sequence })
    this.answers.push(answer)
    slot.answer = undefined
  }

  private drafts(spans: readonly { drafted: number; sequence: number; position: number }[]): void {
    const startNs = this.pass(10)
    for (const { drafted, sequence, position } of spans) {
      if (drafted === 0) continue
      const batch = {
        ...({ function: 'llama_decode', isLeftOut: false, result: 0, context: DRAFT, areAllOutput: false } as const),
        spans: [{ sequence, position, tokens: 1 }],
      }
      const at = { startNs: this.pass(5), endNs: this.pass(300), tid: MAIN }
      this.events.push({ kind: 'token', call: this.call++, phase: 'decode', tokens: 1, ...at, inferred: 0, batch })
    }
    this.draftFunction(startNs)
  }

  private draftFunction(startNs: number): void {
    const at = { startNs, endNs: this.pass(5), tid: MAIN, context: 0 }
    this.events.push({ kind: 'function', what: 'draft', name: 0, ...at, sequence: -1, output: -1, value: -1 })
  }

  private function(
    what: 'sample' | 'accept' | 'token-to-piece' | 'accept-draft',
    ns: number,
    output = -1,
    sequence = -1,
    value = -1,
  ) {
    const at = { startNs: this.pass(3), endNs: this.pass(ns), tid: MAIN, context: TARGET }
    if (this.recorded.functions) this.events.push({ kind: 'function', what, name: 0, ...at, sequence, output, value })
  }

  private remove(sequence: number, from: number): void {
    const at = { atNs: this.pass(2), tid: MAIN, context: TARGET }
    this.events.push({
      kind: 'sequence',
      what: 'remove',
      ...at,
      sequence,
      to: -1,
      from,
      end: -1,
      delta: 0,
      isDone: true,
    })
  }

  private add(event: TraceEvent & { kind: 'task' }): void {
    if (this.recorded.tasks) this.events.push(event)
  }

  private pass(ns: number): number {
    this.ns += ns
    return this.ns
  }
}

/** The events as an input, in batches of a length. */
export function inputOf(events: readonly TraceEvent[], length = 64): Input {
  const attributes = { command: 'llama-server' }
  const input: TraceEvent = { kind: 'input', format: 'own', clock: 'MONOTONIC', originNs: 10n ** 18n, attributes }
  const batches: TraceEvent[][] = [[input]]
  for (let i = 0; i < events.length; i += length) batches.push(events.slice(i, i + length))
  return { name: 'server', events: () => batches }
}
