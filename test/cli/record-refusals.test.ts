import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { record } from '../../lib/node.ts'
import { inLong } from '../long.ts'
import { at, CLI, folder, run } from './helpers.ts'
import {
  CALLER,
  canRecord,
  canRun,
  compile,
  LLAMA,
  linuxTest,
  NO_CALL,
  rootTest,
  script,
  unless,
  useProgram,
  writeHashes,
} from './record-helpers.ts'

useProgram()

describe('refuses what cannot be recorded, before it starts', () => {
  unless(!canRecord || !canRun('sh', '-c', 'echo "int main(){}" | cc -x c -static - -o /dev/null'))(
    'static programs, but not those that start others (needs libc.a)',
    () => {
      compile('static', 'int main(void) { return 5; }', '-static')
      const { code, stderr } = run(['record', '--no-children', './static'])
      expect([code, stderr.split('\n')[0]]).toEqual([
        1,
        'error: ./static: cannot be recorded: it is linked statically, and the system loads no other library into it',
      ])
      expect(run(['record', './static']).code).toBe(5)
      compile('computes', 'const char * name = "llama_decode"; int main(void) { return name[0]; }', '-static')
      expect(run(['record', './computes'])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/linked statically/),
      })
    },
  )

  rootTest('programs with more rights than ours (needs root)', () => {
    compile('other', 'int main(void) { return 0; }')
    chownSync(at('other'), 65534, 65534)
    chmodSync(at('other'), 0o4755)
    expect(run(['record', './other'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/owner's rights \(setuid or setgid\).*\nhint: /),
    })
    chownSync(at('other'), 0, 0)
    chmodSync(at('other'), 0o4755)
    expect(run(['record', './other'])).toMatchObject({ code: 0, stderr: expect.stringMatching(NO_CALL) }) // root is root already
  })

  linuxTest('programs for other machines, and such as have no loader here', () => {
    copyFileSync(at('caller'), at('foreign'))
    const bytes = readFileSync(at('foreign'))
    bytes.writeUInt16LE(183, 18)
    writeFileSync(at('foreign'), bytes)
    expect(run(['record', './foreign'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/built for another processor \(ELF machine 183\)/),
    })
    compile('musl', 'int main(void) { return 0; }', '-Wl,--dynamic-linker=/lib/ld-musl-none.so.1')
    expect(run(['record', './musl'])).toMatchObject({
      code: 127,
      stderr: expect.stringMatching(/its loader \/lib\/ld-musl-none\.so\.1 is not/),
    })
  })

  linuxTest('not: interpreters and libraries in folders with blanks and letters beyond ASCII', () => {
    mkdirSync(at('größe'))
    symlinkSync('/bin/sh', at('größe/sh'))
    script('interpreted', '#!größe/sh\nexit 3\n')
    expect(run(['record', './interpreted'])).toMatchObject({ code: 3, stderr: expect.stringMatching(NO_CALL) })
    mkdirSync(at('große Größe'))
    compile('große Größe/libllama.so', LLAMA, '-shared', '-fPIC')
    compile('beyond', CALLER, `-L${at('große Größe')}`, '-l:libllama.so', `-Wl,-rpath,${at('große Größe')}`)
    expect(run(['record', '--ops', 'MULMATRIX', './beyond'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: ops: MULMATRIX: the ggml that the program is linked with has no such op/),
    })
  })

  linuxTest('files that only look like programs', () => {
    for (const length of [4, 63, 64, 500, 4096]) {
      writeFileSync(at('cut'), readFileSync(at('caller')).subarray(0, length))
      chmodSync(at('cut'), 0o755)
      expect([length, run(['record', './cut']).code]).toEqual([length, 126])
    }
  })

  linuxTest('counters that there are not, and counters where no operators are recorded', () => {
    const tried = (...args: string[]) => run(['record', ...args, './caller'])
    const unknown = tried('--counters', 'cycles, cycle')
    expect(unknown.code).toBe(1)
    expect(unknown.stderr).toMatch(
      /^error: counters: no counter is called "cycle"; expected cycles, instructions, .*r01c2/,
    )
    for (const name of ['r', 'rg', 'cpu/config=/', '../config=1/', 'cpu/event=1/', `r${'1'.repeat(17)}`]) {
      expect([name, tried('--counters', name).code]).toEqual([name, 1])
    }
    const many = Array.from({ length: 17 }, (_, i) => `r${i}`).join(',')
    expect(tried('--counters', many).stderr).toBe('error: counters: expected 1 to 16, found 17\n')
    expect(tried('--counters', 'cycles', '--level', 'graph').stderr).toBe(
      'error: counters: expected level op, found graph\n',
    )
  })

  test('other systems', async () => {
    const command = ['true'] as const
    const fails = (platform: string, arch = 'x64') => expect(record({ command, env: {}, platform, arch })).rejects
    await fails('darwin').toThrow('runs on Linux only so far, this is macOS')
    await fails('win32').toThrow('this is Windows')
    await fails('linux', 's390x').toThrow('does not know this processor (s390x)')
  })
})

/** The package as npm installs it: with a prebuilt library, without what only a clone has. */
describe('the library', () => {
  const cached = () => execFileSync('find', [at('cache'), '-name', '*.so'], { encoding: 'utf8' }).trim()
  const home = dirname(dirname(CLI))
  const install = (to: string, library: string | Uint8Array) => {
    mkdirSync(at(`${to}/dist/native/linux-${process.arch}`), { recursive: true })
    for (const name of ['dist/ggml2perfetto.js', 'dist/cli.js', 'package.json'])
      copyFileSync(`${home}/${name}`, at(`${to}/${name}`))
    for (const name of ['dist/cli', 'dist/chunks']) cpSync(`${home}/${name}`, at(`${to}/${name}`), { recursive: true })
    cpSync(`${home}/native`, at(`${to}/native`), { recursive: true, filter: (path) => !path.includes('/build') })
    symlinkSync(`${home}/node_modules`, at(`${to}/node_modules`))
    writeFileSync(
      at(`${to}/dist/native/linux-${process.arch}/libggml2perfetto.so`),
      typeof library === 'string' ? readFileSync(library) : library,
    )
    writeHashes(at(to))
    return (env: Record<string, string>) =>
      spawnSync(process.execPath, [at(`${to}/dist/ggml2perfetto.js`), 'record', '-o', 'p.ggtrace', './caller'], {
        cwd: folder,
        env: { ...process.env, ...env },
        encoding: 'utf8',
      })
  }

  inLong(linuxTest)('is built once, whole, even by several at once', async () => {
    const env = { ...process.env, XDG_CACHE_HOME: at('racing') }
    const codes = await Promise.all(
      Array.from({ length: 3 }, () => {
        const child = spawn(process.execPath, [CLI, 'record', '-q', 'sh', '-c', 'exit 4'], { env, stdio: 'ignore' })
        return new Promise((resolve) => child.on('close', resolve))
      }),
    )
    expect(codes).toEqual([4, 4, 4])
    const files = execFileSync('find', [at('racing'), '-type', 'f'], { encoding: 'utf8' })
      .trim()
      .split('\n')
    const built = /\/ggml2perfetto\/\d+\.\d+\.\d+-\w+-[0-9a-f]{16}\/(SHA256SUMS|libggml2perfetto\.so)$/
    expect(files.map((file) => built.exec(file)?.[1]).sort()).toEqual(['SHA256SUMS', 'libggml2perfetto.so'])
  })

  linuxTest('that cannot be built says what to do', () => {
    const without = (env: Record<string, string>) =>
      run(['record', 'true'], { env: { XDG_CACHE_HOME: at('none'), ...env } })
    expect(without({ CC: '/nonexistent/cc' })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no such compiler, .*\nhint: install a C compiler/),
    })
    expect(without({ CC: 'false' })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/false: the recorder cannot be built from/),
    })
    expect(without({ XDG_CACHE_HOME: '/proc/x' })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/hint: set XDG_CACHE_HOME/),
    })
    expect(without({ XDG_CACHE_HOME: at('a b') })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/LD_PRELOAD takes no path with blanks/),
    })
  })

  inLong(linuxTest)(
    'comes with the package, needs no compiler and no cache there; another file at its place is not used',
    () => {
      const nothing = { CC: '/nonexistent/cc', XDG_CACHE_HOME: '/proc/x' }
      const inPackage = install('package', cached())
      expect(inPackage(nothing)).toMatchObject({
        status: 0,
        stderr: expect.stringMatching(/^decode .* tok\/s .*\np\.ggtrace: 2 calls/),
      })
      // A path that LD_PRELOAD does not take: a copy in the cache is used.
      const spaced = install('my package', cached())
      expect(spaced({ CC: '/nonexistent/cc', XDG_CACHE_HOME: at('copies') })).toMatchObject({ status: 0 })
      writeFileSync(at(`package/dist/native/linux-${process.arch}/libggml2perfetto.so`), 'another')
      expect(inPackage({})).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(
          /libggml2perfetto\.so: is not the file of this package: expected SHA-256 [0-9a-f]{64}, found ae448a\w*\nhint: install ggml2perfetto again\n$/,
        ),
      })
    },
  )

  inLong(linuxTest)('of the package that this system does not load is built anew', () => {
    const outcome = install('broken', Buffer.from('no library'))({ XDG_CACHE_HOME: at('anew') })
    expect(outcome.stderr).toMatch(/^building the recorder with cc, once\ndecode .* tok\/s .*\np\.ggtrace: 2 calls/)
  })
})
