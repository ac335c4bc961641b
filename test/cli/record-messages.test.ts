import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ensureLlama, hasLlama, LIB, model, runner } from '../llama/testbed.ts'
import { at, CLI, canMount, folder, names, run, withMount } from './helpers.ts'
import { canRun, compile, LLAMA, linuxTest, NO_CALL, script, unless, useProgram } from './record-helpers.ts'
import '../live.ts'
import { inLong } from '../long.ts'

/** What `record` says where less was recorded than was wanted: the true reason, for each. */

useProgram()

const llamaTest = hasLlama() ? test : test.skip
const fullTest = hasLlama() && canMount() ? test : test.skip
const nobodyTest = unless(process.getuid?.() !== 0 || !canRun('setpriv', '--version'))

let program: string[] = []

beforeAll(async () => {
  if (!hasLlama()) return
  await ensureLlama()
  const { path } = await model('tinyDense')
  program = [await runner(), '--lib', LIB, '--model', path, '--threads', '1', '--prompt', '2', '--decode', '1']
})

describe('nothing but calls, or no operators, because of', () => {
  const said = (...args: string[]) => {
    const { code, stderr } = run(['record', '-o', 'less.ggtrace', ...args, ...program])
    expect(stderr).not.toMatch(/does not export|was not seen|GPU/)
    return { code, notes: stderr.split('\n').filter((line) => line.startsWith('  note: ')) }
  }

  llamaTest('--paused (needs linux-x64, cc)', () => {
    expect(said('--paused')).toEqual({
      code: 0,
      notes: [expect.stringMatching(/only calls: recording was paused \(--paused\), and nothing resumed it/)],
    })
  })

  llamaTest('--tokens (needs linux-x64, cc)', () => {
    const notes = ['  note: only calls: none of its 2 calls is in --tokens 50..']
    expect(said('--tokens', '50..')).toEqual({ code: 0, notes })
    expect(run(['less.ggtrace', '-o', 'less.pftrace']).stdout).toContain(notes[0])
  })

  llamaTest('--max-size (needs linux-x64, cc)', () => {
    const notes = ['  note: no operators: the log reached its size limit before the first one was written']
    // Four segments of definitions and calls, and less than one more, whichever thread asks for it first.
    expect(said('--max-size', '80K')).toEqual({ code: 0, notes })
  })

  llamaTest('--ops: an op that this ggml has, but not this model (needs linux-x64, cc)', () => {
    const notes = ['  note: no operators: no node of the graphs has an op of --ops CONV_2D']
    expect(said('--ops', 'conv_2d')).toEqual({ code: 0, notes })
    // Which ggml a wrapper starts is not known ahead.
    expect(said('--ops', 'CONV_9D', 'env')).toEqual({
      code: 0,
      notes: ['  note: no operators: no node of the graphs has an op of --ops CONV_9D'],
    })
  })
})

describe('--ops that no ggml has', () => {
  const refused = (ops: string, ...before: string[]) => {
    const { code, stdout, stderr } = run(['record', '-o', 'none.ggtrace', '--ops', ops, ...before, ...program])
    expect([code, stdout, names().includes('none.ggtrace')]).toEqual([1, '', false])
    return stderr
  }

  llamaTest('is refused with what was meant, before the program starts (needs linux-x64, cc)', () => {
    const whose = 'the ggml that the program is linked with has no such op'
    expect(refused('MULMAT')).toBe(`error: ops: MULMAT: ${whose}\nhint: did you mean MUL_MAT?\n`)
    expect(refused('ADD,rms_nrom')).toBe(`error: ops: RMS_NROM: ${whose}\nhint: did you mean RMS_NORM?\n`)
    expect(refused('XYZZYX')).toBe(`error: ops: XYZZYX: ${whose}\n`)
    expect(refused('MULMAT', 'env')).toBe('error: ops: MULMAT: ggml has no such op\nhint: did you mean MUL_MAT?\n')
  })
})

describe('a log that cannot be written', () => {
  fullTest('completely: the disk is full, and the exit code says so (needs root, linux-x64, cc)', () => {
    withMount('small', 'size=100k', () => {
      const args = ['-o', 'small/full.ggtrace', ...program]
      const { code, stderr } = run(['record', ...args])
      expect(code).toBe(1)
      expect(stderr).toMatch(/^error: small\/full\.ggtrace: the disk was full: the log is incomplete\nhint: /)
      expect(stderr).toMatch(/! the disk was full: .* records were dropped\n +hint: the log is incomplete/)
      expect(stderr).toMatch(/! (\d+ × )?dropped records: .* had no space for \d+ records?/)
      expect(run(['record', '-q', '-o', 'small/none.ggtrace', ...program])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: small\/none\.ggtrace: (cannot write: no space left|the disk was full)/),
      })
    })
  })

  fullTest('keeps the exit code of a program that failed (needs root, linux-x64, cc)', () => {
    withMount('small', 'size=100k', () => {
      const args = ['-o', 'small/full.ggtrace', 'sh', '-c', '"$@"; exit 7', 'sh', ...program]
      expect(run(['record', '-q', ...args])).toMatchObject({ code: 7, stderr: expect.stringMatching(/disk was full/) })
    })
  })

  nobodyTest('by the user that the program runs as (needs root)', () => {
    mkdirSync(at('of-root'))
    chmodSync(at('of-root'), 0o755)
    chmodSync(folder, 0o755)
    const other = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    mkdirSync(at('for all users'))
    chmodSync(at('for all users'), 0o1777)
    // The copy of the recorder for that user, too, is where LD_PRELOAD takes it.
    const env = { TMPDIR: at('for all users') }
    expect(run(['record', '-o', 'of-root/run.ggtrace', ...other, './caller'], { env })).toEqual(
      expect.objectContaining({
        code: 1,
        stdout: 'said\n',
        stderr:
          'error: of-root/run.ggtrace: cannot write: permission denied: the program ran as user 65534\n' +
          'hint: name a log in a folder that this user can write, such as -o /tmp/run.ggtrace\n',
      }),
    )
  })
})

describe('without a ggml call, it says why', () => {
  const reasons = (args: readonly string[]) => {
    const { stderr } = run(['record', ...args])
    expect(stderr).toMatch(NO_CALL)
    return stderr.split('\n').slice(1, -1)
  }

  linuxTest('a wrapper, a script, hidden symbols, an early end', () => {
    expect(reasons(['--no-children', 'true'])[0]).toMatch(
      /did its children do the work, .*\? --no-children leaves them out/,
    )
    expect(reasons(['true'])[0]).toMatch(
      /does it use llama\.cpp\? It is not linked with ggml\. .* objdump -R <library> \| grep llama_decode prints nothing/,
    )
    expect(reasons(['sh', '-c', 'exit 2'])[0]).toMatch(/it ended with exit code 2, perhaps before/)
    script('wrapper', '#!/bin/sh\n./caller\n')
    expect(reasons(['--no-children', './wrapper'])).toEqual([
      '  - it is a script: --no-children leaves out what a script runs',
    ])
    expect(reasons(['true']).join()).not.toMatch(/children/)
    script('sudo', '#!/bin/sh\nexec env -u LD_PRELOAD ./caller\n')
    expect(reasons(['./sudo']).join()).toMatch(
      /env started .*\/caller without the recorder: env did not pass it LD_PRELOAD: record there/,
    )
    script('docker', '#!/bin/sh\nexit 0\n')
    expect(reasons(['./docker']).join()).toMatch(/docker starts programs without LD_PRELOAD: record there/)
    expect(reasons(['./caller', '1', '2', '3', '4', '5']).join()).toMatch(/it ended with exit code 9/)
  })

  linuxTest('ggml built in', () => {
    const source = `${LLAMA}\nint main(void) { struct llama_batch b = {.n_tokens = 1}; return llama_decode(0, b); }`
    compile('exporting', source, '-rdynamic')
    compile(
      'hiding',
      source.replace('int32_t llama_decode', 'const char * name = "llama_decode";\nint32_t llama_decode'),
      '-s',
    )
    const why = { exporting: 'perhaps it had nothing to compute', hiding: 'it has no symbols, by which' }
    for (const [name, reason] of Object.entries(why)) {
      expect(reasons([`./${name}`])).toEqual([
        expect.stringMatching(`ggml is built into it .*${reason}.*BUILD_SHARED_LIBS=ON`),
      ])
    }
  })
})

describe('a log without a given name', () => {
  inLong(linuxTest)('has a name of its own, also if several are recorded in the same second', async () => {
    mkdirSync(at('same'))
    const said = await Promise.all(
      Array.from({ length: 4 }, () => {
        const child = spawn(process.execPath, [CLI, 'record', '--', '../caller'], { cwd: at('same'), stdio: 'pipe' })
        let stderr = ''
        child.stderr.on('data', (data) => {
          stderr += data
        })
        return new Promise<string>((resolve) => child.on('close', () => resolve(stderr)))
      }),
    )
    const logs = said.map((stderr) => /^next: ggml2perfetto (caller-\d{8}-\d{6}(?:-\d)?\.ggtrace)$/m.exec(stderr)?.[1])
    expect(new Set(logs).size).toBe(4)
    expect(readdirSync(at('same')).sort()).toEqual([...logs].sort())
    said.forEach((stderr, i) => {
      expect(new Set(stderr.match(/caller-[\d-]+\.ggtrace(\.\d+)?/g))).toEqual(new Set([logs[i]]))
    })
  })
})
