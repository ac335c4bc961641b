import type { Analysis, SamplerFigures } from '../analysis.ts'
import { CALLS } from '../run/losses.ts'
import { confidenceOf, found, type Limit, type Looked, type Rule } from './rule.ts'
import { percent, shares, time } from './words.ts'

const GRAMMAR_SHARE: Limit = {
  value: 0.1,
  why: 'of the time of decode calls and sampling: a small grammar checks one token in microseconds',
}

/** A grammar, or a schema, takes much of the time of tokens. */
export const slowGrammar: Rule = {
  id: 'slow-grammar',
  title: 'The grammar is slow',
  limits: { share: GRAMMAR_SHARE },
  advice:
    'Where the token that was sampled does not fit, the grammar is applied to the whole vocabulary. Rules with less ambiguity, no large ' +
    'counts of repetitions (x{0,500}), and a prompt that asks for the format make it rare; a build with LLGUIDANCE is faster',
  covers: ['between-calls', 'slow-samplers'],
  look: (analysis) => lookAt(analysis, GRAMMAR_SHARE, isGrammar, 'the grammar takes', 'grammar'),
}

const SAMPLERS_SHARE: Limit = {
  value: 0.2,
  why: 'of the time of decode calls and sampling: samplers take less than a tenth, except in models of a few MB',
}

/** Samplers without the grammar take much of the time of tokens. */
export const slowSamplers: Rule = {
  id: 'slow-samplers',
  title: 'Samplers are slow',
  limits: { share: SAMPLERS_SHARE },
  advice:
    'Fewer samplers (--samplers), and a small --top-k first: those after it sort fewer candidates. Penalties and dry grow with their ' +
    'window (--repeat-last-n, --dry-penalty-last-n)',
  covers: ['between-calls'],
  look: (analysis) => lookAt(analysis, SAMPLERS_SHARE, (figures) => !isGrammar(figures), 'samplers take', 'samplers'),
}

const isGrammar = ({ name }: SamplerFigures) => /grammar|llguidance/i.test(name)

function lookAt(
  analysis: Analysis,
  limit: Limit,
  isMeant: (figures: SamplerFigures) => boolean,
  subject: string,
  key: string,
): Looked[] {
  const { sampling } = analysis
  const meant = sampling?.samplers.filter(isMeant) ?? []
  if (!sampling || meant.length === 0) return []
  const sum = (figureOf: (sampler: SamplerFigures) => number) =>
    meant.reduce((sum, sampler) => sum + figureOf(sampler), 0)
  const [ns, share, calls] = [
    sum((figures) => figures.time_ns),
    sum((figures) => figures.share),
    sum((figures) => figures.calls),
  ]
  const perToken = sampling.tokens === null || sampling.tokens === 0 ? null : ns / sampling.tokens
  const by = shares(meant.map((figures) => [`${figures.what} ${figures.name}`.trim(), figures.share]))
  const each = perToken === null ? '' : ` (${time(perToken)} a token)`
  const sentence = `${subject} ${percent(share)} of the time of tokens${each}${by === '' ? '' : `: ${by}`}`
  if (share < limit.value) return [{ figure: sentence }]
  return found(sentence, {
    time_ns: ns,
    ...confidenceOf(analysis, calls, [...CALLS, 'functions']),
    evidence: {
      ...{ [`${key}_share`]: share, [`${key}_ns`]: ns, calls },
      ...(perToken !== null && { per_token_ns: perToken, tokens: sampling.tokens! }),
    },
    check: { command: 'ggml2perfetto stats <logs>', evidence: `${key}_share` },
  })
}
