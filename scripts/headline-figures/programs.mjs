/**
 * The programs, how each is run, and pairs of its figures and ours. `definition`: what differs by definition. Times are in ms, rates in tokens
 * per second.
 */
import { fileURLToPath } from 'node:url'
import { installed } from './npm.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const MS = 1e6

/** About 200 tokens. */
const PROMPT = Array.from({ length: 100 }, (_, i) => `w${i}`).join(',')

const numbers = (pattern, text) => {
  const found = pattern.exec(text)
  if (!found) throw new Error(`it did not print ${pattern}`)
  return found.slice(1).map(Number)
}

/** The times of llama_perf_context_print, in ms. */
const perfOf = (text) => {
  const [promptMs, promptTokens] = numbers(/prompt eval time = +([\d.]+) ms \/ +(\d+) tokens/, text)
  const [evalMs, runs] = numbers(/ {2}eval time = +([\d.]+) ms \/ +(\d+) runs/, text)
  return { promptMs, promptTokens, evalMs, runs }
}

const ttft = (own, { ttft_ns }, definition) => ({ figure: 'TTFT (ms)', own, ours: ttft_ns / MS, definition })
const prefill = (own, { prefill_tokens_per_s }, definition) => {
  return { figure: 'prefill tok/s', own, ours: prefill_tokens_per_s, definition }
}
const tpot = (own, { tpot_ns }, definition) => ({ figure: 'TPOT (ms)', own, ours: tpot_ns / MS, definition })
const rate = (own, { decode_tokens_per_s }, definition) => ({
  figure: 'tok/s',
  own,
  ours: decode_tokens_per_s,
  definition,
})

/** Programs that print the time of their calls of one token: with what they do between them, it is our TPOT. */
const decodeCall = (own, { series, calls }) => {
  const times = series.calls.rows.filter(({ phase }) => phase === 'decode').map(({ time_ns }) => time_ns)
  const ours = times.reduce((sum, ns) => sum + ns, 0) / times.length / MS
  const between = `it times calls alone: our TPOT, ${(calls.tpot_ns / MS).toPrecision(4)} ms, also contains what is between them`
  return { figure: 'call of decode (ms)', own, ours, remark: between }
}

/** The figures of llama.cpp's context. */
const perf = (printed, analysis) => {
  const { promptMs, promptTokens, evalMs, runs } = perfOf(printed)
  const { calls } = analysis
  return [ttft(promptMs, calls), prefill((promptTokens * 1000) / promptMs, calls), decodeCall(evalMs / runs, analysis)]
}

const TOTAL =
  'its own: total time without that of the prompt, so also what is before the prompt and after the last token'

/** Programs that print the total time, too. */
const completion = (printed, analysis) => {
  const { promptMs, runs } = perfOf(printed)
  const [totalMs] = numbers(/total time = +([\d.]+) ms/, printed)
  const tokenMs = (totalMs - promptMs) / runs
  const { calls } = analysis
  return [...perf(printed, analysis), tpot(tokenMs, calls, TOTAL), rate(1000 / tokenMs, calls, TOTAL)]
}

/** A row of ours for each test. */
const bench = (printed, { calls }) => {
  const tests = JSON.parse(printed.slice(printed.indexOf('['), printed.lastIndexOf(']') + 1))
  return tests.map(({ n_prompt, n_gen, n_depth, avg_ts }) => {
    const is = (of) => of.depth === n_depth && of.prompt_tokens === n_prompt && of.generated_tokens === n_gen
    const ours = calls.runs.find(is)?.tokens_per_s
    const figure = n_gen === 0 ? 'prefill tok/s' : n_prompt === 0 ? 'tok/s' : 'tok/s of both'
    return { figure: `${figure}: pp${n_prompt} tg${n_gen} @ d${n_depth}`, own: avg_ts, ours }
  })
}

const batchedBench = (printed, { calls }) => {
  const lines = printed.split('\n').filter((line) => line.startsWith('{'))
  return lines.flatMap((line) => {
    const { pl, speed_pp, speed_tg, t_pp } = JSON.parse(line)
    const of = calls.runs.find(({ sequences }) => sequences === pl) ?? {}
    const named = (row) => ({ ...row, figure: `${row.figure} of ${pl}` })
    return [named(ttft(t_pp * 1000, of)), named(prefill(speed_pp, of)), named(rate(speed_tg, of))]
  })
}

const speculative = (printed, { calls }) => {
  const [encodedS] = numbers(/encoded +\d+ tokens in +([\d.]+) seconds/, printed)
  const [tokens, decodedS] = numbers(/decoded +(\d+) tokens in +([\d.]+) seconds/, printed)
  const [drafted] = numbers(/n_drafted += +(\d+)/, printed)
  const [accepted] = numbers(/n_accept += +(\d+)/, printed)
  const until = 'its own ends after the last call of the draft, ours with the last token'
  return [
    ttft(encodedS * 1000, calls, 'its own is in whole ms'),
    tpot((decodedS * 1000) / tokens, calls, until),
    rate(tokens / decodedS, calls, until),
    { figure: 'drafted tokens', own: drafted, ours: calls.drafts.drafted_tokens },
    { figure: 'accepted tokens', own: accepted, ours: calls.drafts.accepted_tokens },
  ]
}

const embedding = (printed, { calls }) => {
  const { promptMs, promptTokens } = perfOf(printed)
  const tokens = calls.by_phase.encode.tokens
  return [
    ttft(promptMs, calls),
    { figure: 'tok/s of encode', own: (promptTokens * 1000) / promptMs, ours: (tokens * 1e9) / calls.ttft_ns },
  ]
}

/** llama.cpp counts the decoder's first token as others, and does not time its encoder. */
const t5 = (printed, { calls, series }) => {
  const { evalMs, runs } = perfOf(printed)
  const [totalMs] = numbers(/total time = +([\d.]+) ms/, printed)
  const rows = series.calls.rows
  const own = rows.filter(({ phase }) => phase !== 'encode').map(({ time_ns }) => time_ns / MS)
  const call = own.reduce((sum, ms) => sum + ms, 0) / own.length
  const ours = (calls.ttft_ns + calls.tpot_ns * (runs - 1)) / MS
  return [
    { figure: 'call of the decoder (ms)', own: evalMs / runs, ours: call },
    { figure: 'TTFT + TPOT of all other tokens (ms)', own: totalMs, ours, definition: 'its own: total time' },
  ]
}

const server = ({ timings }, { requests }) => {
  const { prompt_ms, prompt_n, prompt_per_second, predicted_ms, predicted_n } = timings
  const span = 'its own: over the tokens after the first'
  const launched = 'its own: from the launch of the slot'
  return [
    { figure: 'TTFT (ms)', own: prompt_ms, ours: requests.by_type.completion.ttft.mean_ns / MS, definition: launched },
    {
      figure: 'prefill tok/s',
      own: prompt_per_second,
      ours: (prompt_n * 1e9) / requests.by_type.completion.ttft.mean_ns,
      definition: launched,
    },
    {
      figure: 'TPOT (ms)',
      own: predicted_ms / (predicted_n - 1),
      ours: requests.by_type.completion.tpot.mean_ns / MS,
      definition: span,
    },
  ]
}

const whisper = (printed, analysis) => {
  const [encodeMs] = numbers(/encode time = +([\d.]+) ms/, printed)
  const [decodeMs, runs] = numbers(/decode time = +([\d.]+) ms \/ +(\d+) runs/, printed)
  const built = 'its own also builds the graph and reads results'
  return [ttft(encodeMs, analysis.calls, built), { ...decodeCall(decodeMs / runs, analysis), definition: built }]
}

/** The answer of @fugood/llama.node. */
const fugood = (printed, { calls }) => {
  const { prompt_ms, prompt_n, predicted_ms, predicted_n } = JSON.parse(/^\{"prompt_n".*$/m.exec(printed)[0])
  const only = 'its own: calls; ours also contains other work between them'
  return [
    ttft(prompt_ms, calls),
    prefill((prompt_n * 1000) / prompt_ms, calls),
    tpot(predicted_ms / predicted_n, calls, only),
    rate((predicted_n * 1000) / predicted_ms, calls, only),
  ]
}

const debian = (line) => (places, log) => places.debian(line, log)

export const programs = [
  {
    name: 'llama-completion',
    run: debian(`llama-completion -m MODEL -t 1 -p ${PROMPT} -n 60 -no-cnv --ignore-eos --temp 0`),
    figures: completion,
  },
  {
    name: 'llama-bench',
    run: debian('llama-bench -m MODEL -t 1 -p 128 -n 32 -pg 64,16 -d 0,64 -r 2 -o json'),
    figures: bench,
  },
  {
    name: 'llama-batched-bench',
    run: debian('llama-batched-bench -m MODEL -t 1 -c 1024 -npp 128 -ntg 32 -npl 1,2 --output-format jsonl'),
    figures: batchedBench,
  },
  {
    name: 'llama-server',
    run: (places, log) =>
      places.debianServer(
        'llama-server -m MODEL -t 1 -c 1024 -np 1 --no-webui',
        { prompt: PROMPT, n_predict: 60, temperature: 0, ignore_eos: true, cache_prompt: false },
        log,
      ),
    figures: server,
  },
  {
    name: 'llama-speculative-simple',
    run: debian(
      `llama-speculative-simple -m MODEL -md MODEL --spec-type draft-simple -t 1 -p ${PROMPT} -n 100 --temp 0.5 --seed 1`,
    ),
    figures: speculative,
  },
  {
    name: 'llama-embedding',
    run: debian(`llama-embedding -m MODEL -t 1 -p ${PROMPT} --pooling mean -v`),
    figures: embedding,
  },
  {
    name: 'llama-completion with a T5',
    run: debian(`llama-completion -m T5 -t 1 -p ${PROMPT} -n 60 -no-cnv --ignore-eos --temp 0`),
    figures: t5,
  },
  { name: 'whisper-cli', run: debian('whisper-cli -m WHISPER -f NOISE -t 1 -bs 1 -bo 1 -nf -l en'), figures: whisper },
  {
    name: 'node-llama-cpp',
    run: async (places, log) =>
      places.node(at('node-llama-cpp.mjs'), [await installed('node-llama-cpp'), places.model], log),
    figures: perf,
  },
  {
    name: '@fugood/llama.node',
    run: async (places, log) =>
      places.node(at('fugood.cjs'), [await installed('@fugood/llama.node'), places.model], log),
    figures: fugood,
  },
]
