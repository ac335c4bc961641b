// What llama-bench prints: a row for each test (a model, options, a number of tokens), with each of its output formats.
//
//     -o json, jsonl   objects with all fields, and with the duration of each repetition ("samples_ns")
//     -o csv, sql      the same fields, without the repetitions
//     -o md            a table for people: some fields, and the speed with its deviation; no times
//
// `test_time` is when a test began, before its warm-up, in whole seconds UTC. Starts of repetitions are not recorded: they are laid end
// to end from there.
//
//     rows.ts    a row → the event of a test
//     texts.ts   lines of CSV, SQL and Markdown → rows

import { isObject } from '../../input/json.ts'
import { JsonItems } from '../../input/json-items.ts'
import { LineCursor } from '../../input/line-cursor.ts'
import { Replay } from '../../input/replay.ts'
import type { TraceEvent } from '../../model/events.ts'
import { type ChunkReader, EventBatch, readBatches } from '../common/batches.ts'
import { jsonIssue, readItems } from '../common/json-issues.ts'
import { type Format, HEAD_BYTES, type ReadContext } from '../format.ts'
import { Tests } from './rows.ts'
import { formOf, TextRows } from './texts.ts'

export const llamaBench: Format = {
  name: 'llama-bench',
  title: 'results of llama-bench: -o json, jsonl, csv, sql or md',
  sniff: (head) =>
    isJson(textOf(head)) ||
    textOf(head)
      .split('\n')
      .some((line) => formOf(line) !== undefined),
  async *read(source, context) {
    const replay = new Replay(source)
    const head = new Head()
    await replay.look((chunk) => head.add(chunk))
    yield* isJson(head.text) ? readJson(replay, context) : readLines(replay, context)
  },
}

const textOf = (head: Uint8Array) => new TextDecoder().decode(head)

/** Does a line begin a document, and has it the fields of a test? */
function isJson(text: string): boolean {
  return /^[ \t]*[[{]/m.test(text) && /"build_commit"\s*:/.test(text) && /"(?:model_filename|cpu_info)"\s*:/.test(text)
}

/** As much of the start of an input as detection sees. */
class Head {
  text = ''
  private readonly decoder = new TextDecoder()
  private bytes = 0

  add(chunk: Uint8Array): boolean {
    this.text += this.decoder.decode(chunk.subarray(0, HEAD_BYTES - this.bytes), { stream: true })
    this.bytes = Math.min(HEAD_BYTES, this.bytes + chunk.length)
    return this.bytes === HEAD_BYTES
  }
}

function readJson(source: AsyncIterable<Uint8Array>, { names }: ReadContext): AsyncGenerator<TraceEvent[]> {
  const items = new JsonItems(source, ['', '*'])
  const tests = new Tests(llamaBench.name, names, new EventBatch())
  return readItems(items, tests, (item) => {
    if (item.what !== 'item') {
      // What the program writes to stderr may be between its rows.
      if (item.what === 'damaged' && !/found "[[{]/.test(item.detail) && items.isBetween) tests.otherLines++
      else tests.issue(...jsonIssue(item))
    } else if (isObject(item.value)) tests.add(item.value, { byte: item.byte })
    else tests.issue('unreadable-row', 'expected an object, found another value', { byte: item.byte })
  })
}

function readLines(source: AsyncIterable<Uint8Array>, { names }: ReadContext): AsyncGenerator<TraceEvent[]> {
  const lines = new LineCursor(source, llamaBench.name, true)
  const tests = new Tests(llamaBench.name, names, new EventBatch())
  const rows = new TextRows(tests)
  return readBatches(lines, {
    batch: tests.batch,
    readChunk(isLast) {
      while (lines.next()) rows.line(lines.text, lines.position, lines.isTorn)
      if (!isLast) return false
      rows.passOn()
      tests.finish(lines)
      return false
    },
  } satisfies ChunkReader)
}
