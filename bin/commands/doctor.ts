import type { ArgumentsCamelCase, CommandModule, InferredOptionTypes } from 'yargs'
import { COMMANDS } from '../commands.ts'
import { documentOf } from '../doctor/document.ts'
import { examine } from '../doctor/examine.ts'
import { answerLines, sectionsOf } from '../doctor/sections.ts'
import { io } from '../io.ts'
import { flag, milliseconds, once, valued, whole } from '../options.ts'
import { ROUNDS } from '../record/options.ts'
import { WIDTH } from '../record/sweep.ts'
import { toText } from '../stats/section.ts'
import { print, printJson, printText } from '../terminal.ts'

/** How long it takes at most, in ms. */
const LIMIT_MS = 90_000

const OPTIONS = {
  model: {
    alias: 'm',
    ...valued(once('--model'), 'The model, a GGUF file', 'the largest one found that suits this machine'),
  },
  rounds: valued(whole('--rounds'), 'Runs of each number of threads, as far as the time permits', `${ROUNDS}`),
  for: valued(milliseconds('--for'), 'How long at most', '90s'),
  json: flag('Print JSON; docs/reference/doctor.md describes it'),
} as const

interface Arguments extends InferredOptionTypes<typeof OPTIONS> {
  program: string | undefined
}

/** `ggml2perfetto doctor` */
export const doctorCommand: CommandModule<object, Arguments> = {
  ...COMMANDS.doctor,
  builder: (yargs) =>
    yargs
      .usage(
        '$0 doctor [program] [options]\n\nFinds llama.cpp and a model, measures the peaks of this machine, records short runs with several numbers of ' +
          'threads, and prints what limits them, what to change, and what that would give. Takes 90 s at most. Nothing is kept but the peaks.',
      )
      .positional('program', {
        type: 'string',
        describe:
          'llama-bench, llama-completion or llama-cli, or the folder of one (default: that of PATH, ./build/bin or ~/llama.cpp/build/bin)',
      })
      .options(OPTIONS)
      .example('$0 doctor', 'with what is found')
      .example('$0 doctor build/bin -m model.gguf', 'with these'),
  handler,
}

async function handler(args: ArgumentsCamelCase<Arguments>): Promise<void> {
  const { program, model, rounds = ROUNDS, for: limitMs = LIMIT_MS, json } = args
  const examined = await examine({ program, model, rounds, limitMs })
  if (json) return printJson(JSON.stringify(documentOf(examined), null, 2))
  await printText(answerLines(examined))
  await print(toText(sectionsOf(examined), io().stdout.columns ?? WIDTH))
}
