import { DefaultMap } from '../../model/default-map.ts'
import type { TaskEvent, TaskStep, TaskValues } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'

/** What a line says about a task. */
interface Step {
  readonly what: TaskStep
  readonly task: number
  readonly slot: number
  readonly values?: TaskValues | undefined
  /** One of few texts, but for errors. */
  readonly text?: string | undefined
}

/** What was written about a slot, which later lines complete. */
interface Slot {
  /** Its current task, from where its launch was written. */
  task: number
  /** Was the number of reused tokens of that task written? The same line is written for each part of the prompt. */
  hasReuse: boolean
  /** How it was selected for the next task. */
  selected: string | undefined
  /** The draft that was written last without the number of tokens after it: the same may follow with it. */
  draft: string | undefined
}

const SLOT = /^slot\s+\S+?: id\s+(\d{1,5}) \| task (-?\d{1,10}) \|\s*(.*)/
const OTHER = /^(?:srv|que|res)\s+\S+?: +(.*)/

const PROMPT = /^new prompt, .*(?:task\.n_tokens|n_prompt_tokens) = (\d+)/
const REUSE = /^(?:cached )?(?:n_tokens|n_past) = (\d+), memory_seq_rm \[(\d+), end\)/
const REUSE_OLD = /^kv cache rm \[(\d+), end\)/
const PROGRESS = /^prompt processing, n_tokens =\s*(\d+), progress = [\d.]+(?:, t =\s*([\d.]+) s)?/
const PROGRESS_OLD = /^prompt (?:processing progress|done|processing done), (?:n_tokens|n_past) = (\d+)/
const GENERATED = /^(?:n_gen|n_decoded) =\s*(\d+), (?:n_remaining|tg) = /
const PROMPT_TIME = /^\s*prompt eval time =\s*([\d.]+) ms \/\s*(\d+) tokens/
const EVAL_TIME = /^\s*eval time =\s*([\d.]+) ms \/\s*(\d+) tokens/
const TOTAL_TIME = /^\s*total time =\s*([\d.]+) ms/
const ACCEPTANCE = /^draft acceptance(?: rate)? = [\d.]+ \(\s*(\d+) accepted \/\s*(\d+) generated\)/
const ACCEPTED = /^accepted\s+(\d+)\/\s*(\d+) draft tokens(, new)?/
const RELEASE = /^stop processing: (?:n_tokens|n_past) = (\d+)/
const SELECTED = /^selected slot by (LCP similarity|LRU|id)\b/
const CHECKPOINT = /^(created|restored|erased|erasing|superseding)(?: \w+)? context checkpoint/
const CHECKPOINT_TOKENS = /\bn_tokens = (\d+)/
const CLEARED = /^clearing (?:prompt|slot|cache)/
const REPROCESS = /^forcing full prompt re-processing due to (.*)/
const SHIFT = /^slot context shift, n_keep = (\d+), n_left = \d+, n_discard = (\d+)/

const NEW_TASK = /^new task, id = (\d{1,10})(\/\d+)?, front = (\d)/
const DEFER = /^(?:.*, )?defer task, (?:id|id_task) = (\d{1,10})/
const RESUME = /^pop deferred task.*, id_task = (\d{1,10})/
const SEND = /^sending result for task id = (\d{1,10})/
const CANCEL = /^(?:stop: )?cancel task, id_task = (\d{1,10})/
const ERROR = /^(?:send_error: )?task id = (\d{1,10}), error: (.*)$/
const TOO_LONG = /^(?:request|the request) \((\d+) tokens\) exceeds/
const NOT_LAUNCHED = /^(failed to launch slot with .*task), id_task = (\d{1,10})/
const CACHE_UPDATE = /^prompt cache update took ([\d.]+) ms/

/**
 * Reads the messages of llama-server (of llama.cpp's b3600 and later) about tasks, one line after the other. Some lines are complete
 * only with earlier ones: the selection of a slot comes before the task, a slot's figures follow its header.
 */
export class ServerMessages {
  private readonly slots = new DefaultMap<number, Slot>(() => {
    return { task: -1, hasReuse: true, selected: undefined, draft: undefined }
  })
  /** The slot and the task that the following lines without a header are about. */
  private header: readonly [slot: number, task: number] | undefined
  /** The server gives itself the next task, to continue. */
  private isOwnTask = false
  /** Tasks that wait, each once: two lines are written. */
  private readonly deferred = new Set<number>()
  /** Tasks that failed: the server cancels them afterwards. */
  private readonly failed = new Set<number>()
  /** The update of the cache of prompts before the next launch. In ns. */
  private cacheNs: number | undefined

  constructor(private readonly names: Names) {}

  /** The steps that `message` states, which may have several lines. `inferred`: bits of {@link TaskEvent.inferred}. */
  read(message: string, atNs: number, tid: number, inferred = 0): TaskEvent[] {
    const events: TaskEvent[] = []
    for (const line of message.includes('\n') ? message.split('\n') : [message]) {
      const step = this.step(line)
      if (!step) continue
      const { what, task, slot, values, text } = step
      const name = text === undefined ? undefined : this.names.id(text)
      events.push({
        kind: 'task',
        what,
        atNs,
        tid,
        task,
        slot,
        values,
        text: name,
        ...(inferred !== 0 && { inferred }),
      })
    }
    return events
  }

  private step(line: string): Step | undefined {
    const first = line.charCodeAt(0)
    // slot, srv, que, res; figures, and nothing else, have no header
    if (first === 0x73 || first === 0x71 || first === 0x72) {
      const slot = SLOT.exec(line)
      if (slot) return this.slotStep(Number(slot[1]), Number(slot[2]), slot[3]!)
      const other = OTHER.exec(line)
      if (other) {
        this.header = undefined
        return this.otherStep(other[1]!)
      }
    }
    return this.header && figures(line, this.header)
  }

  /** What a line with the number of a slot states. */
  private slotStep(slot: number, task: number, body: string): Step | undefined {
    const state = this.slots.of(slot)
    this.header = body === '' ? [slot, task] : undefined
    if (task !== state.task && task >= 0) this.enter(state, task)
    const step = (what: TaskStep, values?: TaskValues, text?: string): Step => ({ what, task, slot, values, text })
    if (body.startsWith('processing task')) return this.launch(state, step)
    if (
      body.startsWith('prompt eval') ||
      body.startsWith('eval') ||
      body.startsWith('draft') ||
      body.startsWith('total')
    ) {
      return figures(body, [slot, task])
    }
    const prompt = PROMPT.exec(body)
    if (prompt) {
      state.hasReuse = false
      return step('prompt', { promptTokens: Number(prompt[1]) })
    }
    const reuse = REUSE.exec(body) ?? REUSE_OLD.exec(body)
    if (reuse) return reused(state, Number(reuse[1]), Number(reuse[2] ?? reuse[1]), step)
    const release = RELEASE.exec(body)
    if (release) return step('release', { contextTokens: Number(release[1]) })
    const selected = SELECTED.exec(body)
    if (selected) {
      state.selected = selected[1]
      return undefined
    }
    const generated = GENERATED.exec(body)
    if (generated) return step('progress', { generatedTokens: Number(generated[1]) })
    return promptStep(body, step) ?? drafted(state, body, step) ?? stateStep(body, step)
  }

  /** A task of the slot of which no launch was read: what was reused for it may have been written before. */
  private enter(state: Slot, task: number): void {
    state.task = task
    state.hasReuse = true
    state.draft = undefined
  }

  private launch(state: Slot, step: MakeStep): Step {
    state.hasReuse = false
    const { selected } = state
    const values = this.cacheNs === undefined ? undefined : { cacheNs: this.cacheNs }
    state.selected = undefined
    this.cacheNs = undefined
    this.deferred.delete(state.task)
    return step('launch', values, selected)
  }

  /** Cancellations and questions about the server's state go to the front of the queue; the server's own task comes alone. */
  private isRequest([, , ofSeveral, inFront]: RegExpExecArray): boolean {
    if (ofSeveral !== undefined || !this.isOwnTask) return inFront === '0'
    this.isOwnTask = false
    return false
  }

  /** What a line of the server, its queue or its results states. */
  private otherStep(body: string): Step | undefined {
    const step = (what: TaskStep, task: string, text?: string): Step => ({ what, task: Number(task), slot: -1, text })
    if (body === 'posting NEXT_RESPONSE') this.isOwnTask = true
    const posted = NEW_TASK.exec(body)
    if (posted) return this.isRequest(posted) ? step('post', posted[1]!) : undefined
    const deferred = DEFER.exec(body)
    if (deferred) {
      const task = Number(deferred[1])
      if (this.deferred.has(task)) return undefined
      this.deferred.add(task)
      return step('defer', deferred[1]!)
    }
    const resumed = RESUME.exec(body)
    if (resumed) {
      this.deferred.delete(Number(resumed[1]))
      return step('resume', resumed[1]!)
    }
    const sent = SEND.exec(body)
    if (sent) return step('send', sent[1]!)
    const cancelled = CANCEL.exec(body)
    if (cancelled) {
      this.deferred.delete(Number(cancelled[1]))
      return this.failed.delete(Number(cancelled[1])) ? undefined : step('cancel', cancelled[1]!)
    }
    const error = ERROR.exec(body)
    if (error) {
      this.failed.add(Number(error[1]))
      const tokens = TOO_LONG.exec(error[2]!)?.[1]
      const values = tokens === undefined ? undefined : { promptTokens: Number(tokens) }
      return { ...step('error', error[1]!, error[2]), values }
    }
    const failed = NOT_LAUNCHED.exec(body)
    if (failed) return step('error', failed[2]!, failed[1])
    const updated = CACHE_UPDATE.exec(body)
    if (updated) this.cacheNs = milliseconds(updated[1]!)
    return undefined
  }
}

type MakeStep = (what: TaskStep, values?: TaskValues, text?: string) => Step

/** A line of a task's figures, without a header of its own. */
function figures(body: string, [slot, task]: readonly [slot: number, task: number]): Step | undefined {
  const step = (values: TaskValues): Step => ({ what: 'timings', task, slot, values })
  const prompt = PROMPT_TIME.exec(body)
  if (prompt) return step({ promptNs: milliseconds(prompt[1]!), processedTokens: Number(prompt[2]) })
  const generation = EVAL_TIME.exec(body)
  if (generation) return step({ generationNs: milliseconds(generation[1]!), generatedTokens: Number(generation[2]) })
  const total = TOTAL_TIME.exec(body)
  if (total) return step({ totalNs: milliseconds(total[1]!) })
  const draft = ACCEPTANCE.exec(body)
  return draft ? step({ acceptedTokens: Number(draft[1]), draftedTokens: Number(draft[2]) }) : undefined
}

/** The first removal from the cache is at the end of what is reused; later ones are at the end of what was processed. */
function reused(state: Slot, tokens: number, position: number, step: MakeStep): Step {
  if (state.hasReuse) return step('progress', { contextTokens: tokens })
  state.hasReuse = true
  return step('reuse', { reusedTokens: tokens, position })
}

function promptStep(body: string, step: MakeStep): Step | undefined {
  const processed = PROGRESS.exec(body)
  if (processed) {
    const [, tokens, seconds] = processed
    const promptNs = seconds === undefined ? undefined : Math.round(Number(seconds) * 1e9)
    return step('progress', { processedTokens: Number(tokens), promptNs })
  }
  const inContext = PROGRESS_OLD.exec(body)
  if (inContext) return step('progress', { contextTokens: Number(inContext[1]) })
  const again = REPROCESS.exec(body)
  return again ? step('reprocess', undefined, again[1]!.split(' (', 1)[0]) : undefined
}

/** A draft that was verified; at the highest verbosity, it is written twice. */
function drafted(state: Slot, body: string, step: MakeStep): Step | undefined {
  const draft = ACCEPTED.exec(body)
  if (!draft) return undefined
  const [accepted, drafted, isSecond] = [draft[1]!, draft[2]!, draft[3] !== undefined]
  const text = `${accepted}/${drafted}`
  const isKnown = isSecond && state.draft === text
  state.draft = isSecond ? undefined : text
  return isKnown ? undefined : step('draft', { draftedTokens: Number(drafted), acceptedTokens: Number(accepted) })
}

function stateStep(body: string, step: MakeStep): Step | undefined {
  const checkpoint = CHECKPOINT.exec(body)
  if (checkpoint) {
    const tokens = CHECKPOINT_TOKENS.exec(body)?.[1]
    const values = tokens === undefined ? undefined : { contextTokens: Number(tokens) }
    return step('checkpoint', values, checkpoint[1] === 'erasing' ? 'erased' : checkpoint[1])
  }
  if (CLEARED.test(body)) return step('checkpoint', undefined, 'cleared')
  const shift = SHIFT.exec(body)
  return shift ? step('shift', { position: Number(shift[1]), discardedTokens: Number(shift[2]) }) : undefined
}

const milliseconds = (text: string): number => Math.round(Number(text) * 1e6)
