import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { chooseModel, findModels } from '../../lib/node/doctor/models.ts'
import { threadCounts } from '../../lib/node/doctor/threads.ts'
import { writeModel } from '../llama/gguf.mjs'
import { CPUS } from '../machine.ts'
import { NANO } from '../native/recording.ts'
import { at, run, useFolder } from './helpers.ts'
import { compile, linuxTest, script } from './record-helpers.ts'

/** What `doctor` says before it measures anything, and which model it takes. Real runs: doctor.long.test.ts. */

useFolder()

/** A user without anything of llama.cpp. */
const env = () => ({
  ...{ PATH: at('none'), HOME: at('home'), XDG_CACHE_HOME: at('home/.cache') },
  ...{ LLAMA_CACHE: '', HF_HOME: '', HF_HUB_CACHE: '' },
})

const doctor = (...args: string[]) => {
  const { code, stdout, stderr } = run(['doctor', ...args], { cwd: at('place'), env: env() })
  return { code, stdout, stderr }
}

beforeAll(async () => {
  for (const folder of ['none', 'home', 'place', 'tools', 'inside']) mkdirSync(at(folder))
  script('tools/llama-bench', '#!/bin/sh\nexit 3\n')
  writeFileSync(at('text.gguf'), 'no model')
  writeFileSync(at('config.json'), JSON.stringify({ model_type: 'llama', hidden_size: 64, num_hidden_layers: 2 }))
  await writeModel(NANO, at('nano.gguf'))
})

const NO_PROGRAM =
  'error: doctor: no llama-bench, llama-completion or llama-cli in PATH, ./build/bin and ~/llama.cpp/build/bin\n' +
  'hint: give the program and a model: ggml2perfetto doctor build/bin/llama-bench -m model.gguf\n'
const NO_MODEL =
  'error: doctor: no model (*.gguf) in this folder, ./models, ~/models, or the caches of llama.cpp and Hugging Face\n' +
  'hint: ggml2perfetto doctor -m model.gguf\n'

linuxTest('without llama.cpp, and without a model, it says how to give them', () => {
  expect(doctor()).toEqual({ code: 1, stdout: '', stderr: NO_PROGRAM })
  expect(doctor(at('tools'))).toEqual({ code: 1, stdout: '', stderr: NO_MODEL })
  expect(doctor(at('tools/llama-bench'))).toEqual({ code: 1, stdout: '', stderr: NO_MODEL })
})

/** `@name`: a path in the folder of this test file. */
linuxTest.each([
  [['./llama-cli'], './llama-cli: no such program'],
  [['@nano.gguf'], 'nano.gguf: cannot run: it is not executable'],
  [['/bin/sh'], '/bin/sh: expected llama-bench, llama-completion or llama-cli\nhint: of another program: '],
  [['@none'], 'no llama-bench, llama-completion or llama-cli in /'],
  [['@tools', '-m', 'nothing.gguf'], 'nothing.gguf: cannot read: no such file'],
  [['@tools', '-m', '@text.gguf'], 'text.gguf: expected a model: a GGUF file or a config.json'],
  [['@tools', '-m', '@config.json'], 'config.json: '],
  [['--for', '90'], '--for "90": expected a time such as 200ms or 1.5s'],
  [['--rounds', '0'], '--rounds "0": expected a whole number from 1'],
])('%j: %s', (args, message) => {
  const given = args.map((word) => (word.startsWith('@') ? at(word.slice(1)) : word))
  expect(doctor(...given)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) })
})

linuxTest('a program that contains ggml itself cannot be recorded if it has no symbols', () => {
  const source =
    '#include "stand-in.h"\nconst char * name = "llama_decode"; int32_t llama_decode(struct llama_context * c, struct llama_batch b) { return c && b.n_tokens; } int main(void) { return llama_decode(0, (struct llama_batch){.n_tokens = 1}); }'
  compile('inside/llama-bench', source, '-s')
  expect(doctor(at('inside'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/llama-bench: cannot be recorded: ggml is built into it .*no symbols.*\nhint: give /),
  })
  compile('inside/llama-bench', source)
  expect(doctor(at('inside'), '-m', 'nothing.gguf').stderr).toMatch(/nothing\.gguf: cannot read/)
})

describe('models', () => {
  /** Puts the model there, or something of its size. */
  const put = (name: string, times = 1) => {
    mkdirSync(at(`${name}/..`), { recursive: true })
    if (times === 1) linkSync(at('nano.gguf'), at(name))
    else writeFileSync(at(name), Buffer.alloc(times * 1000, 'x'))
  }

  test('are found in the usual places, the nearest and then the largest first; parts of one are one', async () => {
    put('home/.cache/llama.cpp/near.gguf')
    put('home/.cache/llama.cpp/near-mmproj.gguf')
    put('home/llama.cpp/models/ggml-vocab-llama.gguf')
    put('home/models/a/divided-00001-of-00002.gguf', 2)
    put('home/models/a/divided-00002-of-00002.gguf', 3)
    put('home/models/a/wrong.gguf', 4)
    const snapshot = at('home/.cache/huggingface/hub/models--a--b/snapshots/c')
    mkdirSync(snapshot, { recursive: true })
    symlinkSync(at('nano.gguf'), `${snapshot}/linked.gguf`)
    const found = await findModels(env())
    expect(found.map(({ path }) => relative(at('home'), path))).toEqual([
      '.cache/llama.cpp/near.gguf',
      '.cache/huggingface/hub/models--a--b/snapshots/c/linked.gguf',
      'models/a/divided-00001-of-00002.gguf',
      'models/a/wrong.gguf',
    ])
    expect(found.map(({ bytes }) => bytes).slice(2)).toEqual([5000, 4000])
    const near = await chooseModel(found, Infinity)
    expect([near.path, near.figures.architecture]).toEqual([at('home/.cache/llama.cpp/near.gguf'), 'llama'])
    // Those that are no models are left out, also where only they are small enough.
    expect((await chooseModel(found, 4500)).path).toBe(at('home/.cache/llama.cpp/near.gguf'))
    await expect(chooseModel(found.slice(2), Infinity)).rejects.toThrow('divided-00001-of-00002.gguf: expected a model')
  })
})

linuxTest('numbers of threads begin with one and end with the CPUs that may be used', async () => {
  const { all, usual } = await threadCounts()
  expect(all[0]).toBe(1)
  expect(all.at(-1)).toBeLessThanOrEqual(CPUS.length)
  expect(all).toContain(usual)
  expect(all).toEqual([...new Set(all)].sort((a, b) => a - b))
})
