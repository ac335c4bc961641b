import { describe, expect, it } from '@jest/globals'
import type { TaskEvent } from '../../lib/core.ts'
import { eventsOf, Names } from '../../lib/index.ts'
import { begun } from './ggtrace-logs.ts'

/** The steps that lines of llama-server's log state, as a .ggtrace contains them in MESSAGE records, 100 ns apart. */
async function stepsOf(lines: readonly string[]): Promise<object[]> {
  const writer = begun()
  const host = writer.thread(700)
  lines.forEach((line, i) => {
    host.message(1000 + 100 * i, 2, line)
  })
  writer.end(1_000_000)
  const names = new Names()
  const steps: TaskEvent[] = []
  for await (const batch of eventsOf({ name: 'run', source: writer.take() }, names)) {
    for (const event of batch) if (event.kind === 'task') steps.push(event)
  }
  return steps.map(({ what, atNs, task, slot, values, text }) => {
    const line = (atNs - 1000) / 100
    return { line, what, task, slot, ...values, ...(text === undefined ? {} : { text: names.text(text) }) }
  })
}

describe('messages of llama-server', () => {
  it('are steps of its tasks: llama.cpp v0.5.0, at verbosity 5', async () => {
    const lines = [
      'que          post: new task, id = 0/1, front = 0',
      'slot get_availabl: id  3 | task -1 |  - skipping, slot is empty',
      'slot get_availabl: id  3 | task -1 | selected slot by LRU, t_last = -1',
      'srv  get_availabl: prompt cache update took 0.06 ms',
      'slot launch_slot_: id  3 | task 0 | processing task, is_child = 0',
      'srv  update_slots: posting NEXT_RESPONSE',
      'que          post: new task, id = 1, front = 0',
      'slot   operator(): id  3 | task 0 | new prompt, n_ctx_slot = 512, n_keep = 0, task.n_tokens = 12',
      'slot   operator(): id  3 | task 0 | cached n_tokens = 4, memory_seq_rm [4, end)',
      'slot   operator(): id  3 | task 0 | cached n_tokens = 8, memory_seq_rm [8, end)',
      "slot process_toke: id  3 | task 0 | n_gen = 1, n_remaining = 3, next token:   296 ' w37'",
      'slot print_timing: id  3 | task 0 | prompt eval time =       4.68 ms /     8 tokens (    0.39 ms per token,  2563.55 tokens per second)',
      'slot print_timing: id  3 | task 0 |        eval time =       3.77 ms /     4 tokens (    1.26 ms per token,   796.60 tokens per second)',
      'slot print_timing: id  3 | task 0 |       total time =       8.45 ms /    12 tokens',
      'res          send: sending result for task id = 0',
      'res          send: task id = 0 pushed to result queue',
      'slot      release: id  3 | task 0 | stop processing: n_tokens = 15, truncated = 0',
    ]
    const of = { task: 0, slot: 3 }
    expect(await stepsOf(lines)).toEqual([
      { line: 0, what: 'post', task: 0, slot: -1 },
      { line: 4, what: 'launch', ...of, cacheNs: 60_000, text: 'LRU' },
      { line: 7, what: 'prompt', ...of, promptTokens: 12 },
      { line: 8, what: 'reuse', ...of, reusedTokens: 4, position: 4 },
      { line: 9, what: 'progress', ...of, contextTokens: 8 },
      { line: 10, what: 'progress', ...of, generatedTokens: 1 },
      { line: 11, what: 'timings', ...of, promptNs: 4_680_000, processedTokens: 8 },
      { line: 12, what: 'timings', ...of, generationNs: 3_770_000, generatedTokens: 4 },
      { line: 13, what: 'timings', ...of, totalNs: 8_450_000 },
      { line: 14, what: 'send', task: 0, slot: -1 },
      { line: 16, what: 'release', ...of, contextTokens: 15 },
    ])
  })

  it('of the queue: a task that waits is deferred once, though two lines state it', async () => {
    const lines = [
      'srv  process_sing: no slot is available, defer task, id_task = 7',
      'que         defer: defer task, id = 7',
      'que  pop_deferred: pop deferred task, id_task = 7',
      'srv  process_sing: requested slot is unavailable, defer task, id_task = 7',
      'que         defer: defer task, id = 7',
      'que  pop_deferred: pop deferred task (use slot 2), id_task = 7',
      'srv          stop: cancel task, id_task = 7',
      'que          post: new task, id = 9/1, front = 1',
      'srv    send_error: task id = 8, error: request (3000 tokens) exceeds the available context size (2048 tokens)',
      'srv          stop: cancel task, id_task = 8',
      'srv  process_sing: failed to launch slot with task, id_task = 10',
    ]
    const step = (line: number, what: string, task: number) => ({ line, what, task, slot: -1 })
    expect(await stepsOf(lines)).toEqual([
      step(0, 'defer', 7),
      step(2, 'resume', 7),
      step(3, 'defer', 7),
      step(5, 'resume', 7),
      step(6, 'cancel', 7),
      {
        ...step(8, 'error', 8),
        text: 'request (3000 tokens) exceeds the available context size (2048 tokens)',
        promptTokens: 3000,
      },
      { ...step(10, 'error', 10), text: 'failed to launch slot with task' },
    ])
  })

  it('of drafts, checkpoints and shifts', async () => {
    const slot = (body: string) => `slot update_slots: id  0 | task 5 | ${body}`
    const lines = [
      slot('accepted  2/ 5 draft tokens'),
      slot('accepted 2/5 draft tokens, new n_tokens = 40'),
      slot('accepted 3/4 draft tokens, new n_tokens = 44'),
      slot('draft acceptance = 0.55556 (    5 accepted /     9 generated), mean len =  3.50'),
      slot('created context checkpoint 1 of 32 (pos_min = 0, pos_max = 99, n_tokens = 100, size = 0.012 MiB)'),
      slot('erased invalidated context checkpoint (pos_min = 0, pos_max = 99, n_tokens = 100, n_swa = 1)'),
      slot('forcing full prompt re-processing due to lack of cache data (likely due to SWA, see https://x.y)'),
      slot('slot context shift, n_keep = 1, n_left = 510, n_discard = 255'),
    ]
    const of = { task: 5, slot: 0 }
    expect(await stepsOf(lines)).toEqual([
      { line: 0, what: 'draft', ...of, acceptedTokens: 2, draftedTokens: 5 },
      { line: 2, what: 'draft', ...of, acceptedTokens: 3, draftedTokens: 4 },
      { line: 3, what: 'timings', ...of, acceptedTokens: 5, draftedTokens: 9 },
      { line: 4, what: 'checkpoint', ...of, contextTokens: 100, text: 'created' },
      { line: 5, what: 'checkpoint', ...of, contextTokens: 100, text: 'erased' },
      { line: 6, what: 'reprocess', ...of, text: 'lack of cache data' },
      { line: 7, what: 'shift', ...of, position: 1, discardedTokens: 255 },
    ])
  })

  // Lines as people show them in llama-swap's issue 35 (January 2025) and llama.cpp's pull request 19408 (February 2026).
  it('of older servers: figures are lines without a header, in one message', async () => {
    const lines = [
      'slot launch_slot_: id  0 | task 35 | processing task',
      'slot update_slots: id  0 | task 35 | new prompt, n_ctx_slot = 16384, n_keep = 0, n_prompt_tokens = 422',
      'slot update_slots: id  0 | task 35 | kv cache rm [185, end)',
      'slot update_slots: id  0 | task 35 | prompt processing progress, n_past = 422, n_tokens = 237, progress = 0.561611',
      'slot update_slots: id  0 | task 35 | prompt done, n_past = 422, n_tokens = 237',
      'slot      release: id  0 | task 35 | stop processing: n_past = 434, truncated = 0',
      [
        'slot print_timing: id  0 | task 35 | ',
        'prompt eval time =     182.78 ms /   237 tokens (    0.77 ms per token,  1296.63 tokens per second)',
        '       eval time =     342.29 ms /    13 tokens (   26.33 ms per token,    37.98 tokens per second)',
        '      total time =     525.07 ms /   250 tokens',
      ].join('\n'),
      'slot update_slots: id  0 | task 135 | new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = 1371',
      'slot update_slots: id  0 | task 135 | n_tokens = 0, memory_seq_rm [0, end)',
      'srv  update_slots: all slots are idle',
      'prompt eval time =     182.78 ms /   237 tokens: of no task',
    ]
    const [of, next] = [
      { task: 35, slot: 0 },
      { task: 135, slot: 0 },
    ]
    expect(await stepsOf(lines)).toEqual([
      { line: 0, what: 'launch', ...of },
      { line: 1, what: 'prompt', ...of, promptTokens: 422 },
      { line: 2, what: 'reuse', ...of, reusedTokens: 185, position: 185 },
      { line: 3, what: 'progress', ...of, contextTokens: 422 },
      { line: 4, what: 'progress', ...of, contextTokens: 422 },
      { line: 5, what: 'release', ...of, contextTokens: 434 },
      { line: 6, what: 'timings', ...of, promptNs: 182_780_000, processedTokens: 237 },
      { line: 6, what: 'timings', ...of, generationNs: 342_290_000, generatedTokens: 13 },
      { line: 6, what: 'timings', ...of, totalNs: 525_070_000 },
      { line: 7, what: 'prompt', ...next, promptTokens: 1371 },
      { line: 8, what: 'reuse', ...next, reusedTokens: 0, position: 0 },
    ])
  })

  it('that begin within a task: the cache may have been cut before', async () => {
    const lines = ['slot   operator(): id  0 | task 4 | cached n_tokens = 512, memory_seq_rm [512, end)']
    expect(await stepsOf(lines)).toEqual([{ line: 0, what: 'progress', task: 4, slot: 0, contextTokens: 512 }])
  })
})
