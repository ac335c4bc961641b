/**
 * Builds programs that contain ggml and llama.cpp from llama.cpp's source in npm's bundle, by upstream's own CMake files with BUILD_SHARED_LIBS=OFF:
 * llama-cli and llama-server, by two compilers with two options each, and a Go program, which cgo links with the same libraries.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const BUNDLE = at('vendor/llama/node/node_modules/node-llama-cpp/llama/gitRelease.bundle')

/** `tools`: whose objects of common/ and tools/ are linked; they take three quarters of the time, and the recorder hooks none of their functions. */
export const variants = [
  { name: 'gcc-O2', cc: 'gcc', cxx: 'g++', level: '-O2', tools: 'gcc-O2' },
  { name: 'gcc-O3', cc: 'gcc', cxx: 'g++', level: '-O3', tools: 'gcc-O2' },
  { name: 'clang-O2', cc: 'clang', cxx: 'clang++', level: '-O2', tools: 'clang-O3' },
  { name: 'clang-O3', cc: 'clang', cxx: 'clang++', level: '-O3', tools: 'clang-O3' },
]

const OPTIONS = [
  ...['BUILD_SHARED_LIBS', 'GGML_NATIVE', 'GGML_OPENMP', 'GGML_CCACHE', 'GGML_LLAMAFILE'].map((name) => `${name}=OFF`),
  ...['GGML_AVX2', 'GGML_FMA', 'GGML_F16C'].map((name) => `${name}=ON`),
  ...['OPENSSL', 'BUILD_TESTS', 'BUILD_EXAMPLES', 'BUILD_APP', 'BUILD_UI', 'USE_PREBUILT_UI'].map(
    (name) => `LLAMA_${name}=OFF`,
  ),
]
const PROGRAMS = ['llama-cli', 'llama-server']

/** Runs a program; an error has what it wrote. */
const run = (command, args, options = {}) =>
  execute(command, args, { maxBuffer: 1 << 28, ...options }).catch((error) => {
    throw new Error(
      `${[command, ...args].join(' ')}: ${`${error.stderr || error.stdout || error.message}`.slice(-2000)}`,
    )
  })

async function unpack(folder) {
  const source = join(folder, 'source')
  if (existsSync(source)) return
  await run(process.execPath, [at('scripts/fetch-llama.mjs'), '--node'])
  const unfinished = join(folder, 'unfinished')
  await rm(unfinished, { recursive: true, force: true })
  await run('git', ['clone', '--quiet', BUNDLE, unfinished])
  await rename(unfinished, source)
}

async function compile(folder, { name, cc, cxx, level }, targets) {
  const flags = `${level} -g0 -DNDEBUG -w`
  const set = {
    CMAKE_BUILD_TYPE: 'None',
    ...{ CMAKE_C_COMPILER: cc, CMAKE_CXX_COMPILER: cxx, CMAKE_C_FLAGS: flags, CMAKE_CXX_FLAGS: flags },
  }
  const options = [...Object.entries(set).map(([key, value]) => `${key}=${value}`), ...OPTIONS].map(
    (text) => `-D${text}`,
  )
  if (!existsSync(join(folder, name, 'build.ninja')))
    await run('cmake', ['-S', 'source', '-B', name, '-G', 'Ninja', ...options], { cwd: folder })
  await run('ninja', ['-C', name, '-j', `${availableParallelism()}`, ...targets], { cwd: folder })
}

/** Links the programs of another build with the libraries of this one. */
async function relink(folder, { name, tools }) {
  await mkdir(join(folder, name, 'bin'), { recursive: true })
  for (const program of PROGRAMS) {
    const { stdout } = await run('ninja', ['-C', tools, '-t', 'commands', `bin/${program}`], { cwd: folder })
    const last = stdout.trim().split('\n').at(-1)
    const own = last.replaceAll(/(?<= )(?:src\/libllama|ggml\/src\/libggml[\w-]*)\.a/g, `../${name}/$&`)
    const command = own.replace(` -o bin/${program} `, ` -o ../${name}/bin/${program} `)
    if (own === last || command === own)
      throw new Error(`${program} is linked in a way that is not known here: ${last}`)
    await run('sh', ['-c', command], { cwd: join(folder, tools) })
  }
}

/** A program of Go, linked by gcc; undefined where there is no Go. */
async function buildGo(folder, name) {
  if (spawnSync('go', ['version']).status !== 0) return
  const [work, program] = [join(folder, name, 'go'), join(folder, name, 'bin/host-go')]
  await mkdir(work, { recursive: true })
  await copyFile(at('scripts/static-programs/host.go'), join(work, 'host.go'))
  await writeFile(join(work, 'go.mod'), 'module host\ngo 1.19\n')
  const libraries = [
    `-L${folder}/${name}/src`,
    `-L${folder}/${name}/ggml/src`,
    '-lllama',
    '-lggml',
    '-lggml-cpu',
    '-lggml-base',
  ]
  const env = {
    ...process.env,
    CGO_CFLAGS: `-I${folder}/source/include -I${folder}/source/ggml/include`,
    CGO_LDFLAGS: [...libraries, '-lstdc++', '-lm', '-lpthread', '-ldl'].join(' '),
    GOCACHE: join(folder, 'go-cache'),
  }
  await run('go', ['build', '-o', program, '.'], { cwd: work, env })
}

/** Builds what is missing; the programs are in `<folder>/<variant>/bin`. */
export async function build(folder, wanted) {
  await mkdir(folder, { recursive: true })
  await unpack(folder)
  for (const { tools } of wanted) {
    await compile(
      folder,
      variants.find(({ name }) => name === tools),
      PROGRAMS,
    )
  }
  for (const variant of wanted) {
    if (variant.tools !== variant.name) {
      await compile(folder, variant, ['llama'])
      await relink(folder, variant)
    }
    await buildGo(folder, variant.name)
  }
}
