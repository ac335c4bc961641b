/** What makes requests of a server slow. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { presets } from '../../../test/llama/gguf.mjs'
import { freePort } from '../../servers.mjs'
import { modelIn } from '../bench-folder.mjs'
import { untilUp } from './parts.mjs'

const SMALL = {
  ...presets.tinyDense,
  layers: 4,
  width: 256,
  feedForward: 512,
  heads: 4,
  kvHeads: 2,
  context: 8192,
}
const LARGE_VOCABULARY = { ...SMALL, layers: 2, width: 64, feedForward: 96, vocabulary: 32_000 }
/** Its drafts are wrong: it has other random weights. */
const DRAFT = { ...SMALL, seed: 7 }
/** A list of words that share their first letters: each token of a large vocabulary is matched with each of them. */
const GRAMMAR = `root ::= (${Array.from({ length: 20 }, (_, i) => `" w${1000 + 37 * i}"`).join(' | ')}){1,40}`
const BOS = 1

/** Tokens of words, others for each `seed`. */
const words = (count, seed) => Array.from({ length: count }, (_, i) => 300 + ((i * 7 + seed * 131) % 1000))
export const prompt = (count, seed) => [BOS, ...words(count - 1, seed)]

/** A completion of so many tokens, greedily: the answer when its first token is there, if it is streamed. */
const answerOf = (url, prompt, tokens, { signal, ...more } = {}) => {
  const body = JSON.stringify({ prompt, n_predict: tokens, ignore_eos: true, temperature: 0, ...more })
  return fetch(`${url}/completion`, { method: 'POST', body, signal })
}
const begin = (url, prompt, tokens) => answerOf(url, prompt, tokens, { stream: true })
export const ask = async (...asked) => (await answerOf(...asked)).text()

/** Leaves before the answer. */
const leave = (url, ms, prompt, tokens) =>
  ask(url, prompt, tokens, { stream: true, signal: AbortSignal.timeout(ms) }).catch(() => undefined)

/** A server that `play` sends requests to. `draft`: a second model. */
export const served = ({ model = SMALL, draft, args = [], play, rule, ...cause }) => ({
  builds: ['pool', 'openmp'],
  isUndisturbed: true,
  rules: [rule],
  async create({ folder, build, number }) {
    const port = await freePort()
    const drafting = draft ? ['-md', await modelIn(folder, draft)] : []
    const place = ['--host', '127.0.0.1', '--port', `${port}`]
    const command = build.server(['-m', await modelIn(folder, model), ...drafting, ...place, '-t', '1', ...args])
    const meanwhile = async (child) => {
      const url = `http://127.0.0.1:${port}`
      await untilUp(url, child)
      try {
        await play(url, number)
      } finally {
        child.kill('SIGINT')
      }
    }
    return { command, meanwhile }
  },
  ...cause,
})

const READ_EVERY_MS = 40
const PAUSES_MAX = 100

/** Reads an answer in pieces, and waits after each: the answer of some MB fills the buffers of the kernel, and the server waits to send. */
async function readSlowly({ port }) {
  const body = JSON.stringify({ ...{ prompt: 'a b c', n_predict: 400, ignore_eos: true }, stream: true, n_probs: 400 })
  const socket = connect({ port: Number(port), host: '127.0.0.1', highWaterMark: 4096 })
  const head = `POST /completion HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
  socket.write(head + body)
  let pauses = 0
  try {
    for await (const _ of socket) if (pauses++ < PAUSES_MAX) await sleep(READ_EVERY_MS)
  } finally {
    socket.destroy()
  }
}

export const slowReader = served({
  id: 'slow-reader',
  title: 'a client that reads its answer slowly',
  rule: 'slow-client',
  model: 'tinyDense',
  play: (url) => readSlowly(new URL(url)),
})

export const promptAgain = served({
  id: 'prompt-again',
  title: 'prompts that differ near their start',
  rule: 'prompt-processed-again',
  args: ['-c', '4096', '-np', '1', '--cache-ram', '0'],
  async play(url, number) {
    const long = prompt(1500 + 100 * number, 3 + number)
    for (let other = 0; other < 4; other++) await ask(url, [...long.slice(0, 5), 400 + other, ...long.slice(5)], 8)
  },
})

export const longPrompt = served({
  id: 'long-prompt',
  title: 'a long prompt while others are answered',
  rule: 'request-stalled',
  args: ['-c', '16384', '-np', '4', '-b', '512'],
  async play(url, number) {
    const answers = [0, 1].map((i) => begin(url, prompt(20, i), 400))
    const [one, other] = await Promise.all(answers)
    await Promise.all([one.text(), other.text(), ask(url, prompt(2000 + 100 * number, 9 + number), 1)])
  },
})

export const slotsTaken = served({
  id: 'slots-taken',
  title: 'more requests at once than slots',
  rule: 'queue-time',
  args: ['-c', '2048', '-np', '1'],
  play: (url, number) => Promise.all([0, 1, 2, 3].map((i) => ask(url, prompt(30, i + number), 60 + 10 * number))),
})

export const cancelled = served({
  id: 'cancelled',
  title: 'clients that leave before they are answered',
  rule: 'cancelled-work',
  args: ['-c', '8192', '-np', '2'],
  async play(url, number) {
    for (let i = 0; i < 4; i++) {
      await leave(url, 250, prompt(60, i + number), 2000)
      await ask(url, prompt(30, 10 + i), 20)
    }
  },
})

export const serverGrammar = served({
  id: 'server-grammar',
  title: 'a request with a slow grammar',
  rule: 'slow-grammar',
  model: LARGE_VOCABULARY,
  args: ['-c', '2048', '-np', '2'],
  play: (url, number) => ask(url, prompt(30, number), 12, { grammar: GRAMMAR }),
})

export const serverSamplers = served({
  id: 'server-samplers',
  title: 'samplers that sort a large vocabulary',
  rule: 'slow-samplers',
  model: LARGE_VOCABULARY,
  args: ['-c', '2048', '-np', '1'],
  play: (url, number) =>
    ask(url, prompt(30, number), 60, {
      ...{
        temperature: 1,
        seed: 1,
        top_k: 0,
        top_p: 0.9,
        min_p: 0,
        typical_p: 0.9,
        samplers: ['typ_p', 'top_p', 'temperature'],
      },
    }),
})

/** One slot, for which two long texts take turns: the state of each is kept in memory, and copied back. */
export const statesKept = served({
  id: 'states-kept',
  title: 'long texts that take turns on one slot',
  rule: 'state-saves',
  args: ['-c', '8192', '-np', '1', '--cache-ram', '4096', '-fa', 'on'],
  model: { ...SMALL, layers: 32, width: 128, feedForward: 128, heads: 2, kvHeads: 2 },
  async play(url, number) {
    const texts = [0, 1].map((i) => prompt(1000 + 100 * number, 20 + i))
    for (let turn = 0; turn < 100; turn++) await ask(url, texts[turn % 2], 1)
  },
})

export const uselessDrafts = served({
  id: 'useless-drafts',
  title: 'drafts that are never accepted',
  rule: 'speculation-slower',
  draft: DRAFT,
  args: ['-c', '2048', '-np', '1', '--spec-type', 'draft-simple'],
  async play(url, number) {
    await ask(url, prompt(30, number), 120 + 20 * number)
  },
})
