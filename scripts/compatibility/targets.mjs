/**
 * The rows of docs/reference/compatibility.md: the versions of llama.cpp, ggml and whisper.cpp that npm and Debian provide as binaries, and those
 * that are not available. test/docs.test.ts compares the table with this list.
 */

/** node-llama-cpp's packages, and the release of llama.cpp in each (its `_nlcBuildMetadata.json`). */
const NPM = [
  ['3.1.1', 'b3889', true],
  ['3.4.0', 'b4435'],
  ['3.5.0', 'b4600'],
  ['3.7.0', 'b4980', true],
  ['3.10.0', 'b5640'],
  ['3.12.0', 'b6122'],
  ['3.14.2', 'b6845'],
  ['3.14.5', 'b7347'],
  ['3.17.1', 'b8179', true],
  ['3.19.0', 'b9842'],
  ['3.20.0', 'b10361'],
  ['3.21.1', 'v0.4.0'],
  ['3.22.1', 'v0.5.0', true],
]

const DEBIAN = [
  ['llama-completion', 'llama-completion -m MOE -p abcdefgh -n 6 -no-cnv -t 2 --seed 1 --temp 0', true],
  ['llama-server', 'llama-server -m MOE -t 2 -c 1024 --port PORT --no-webui'],
  ['llama-bench', 'llama-bench -m MOE -p 16 -n 4 -r 1 -t 2'],
  ['llama-embedding', 'llama-embedding -m MOE -p hello --pooling mean -t 2'],
  [
    'llama-speculative-simple',
    'llama-speculative-simple -m MOE -md MOE --spec-type draft-simple -p abcdefgh -n 20 -t 2 --temp 0 --seed 1',
  ],
  ['whisper-cli', 'whisper-cli -m WHISPER -f NOISE -t 2 -bs 1 -bo 1 -nf -l en'],
]

/** The ways to use ggml's API directly (test/llama/alone.c). */
const ALONE = ['backend', 'plan', 'sched']

/** node-llama-cpp's packages with CUDA, and CUDA's version. They compute on the GPU that does not exist of test/gpu, with a dense model. */
const CUDA = [
  ['3.7.0', 'b4980', 12],
  ['3.14.2', 'b6845', 13],
  ['3.17.1', 'b8179', 13],
  ['3.20.0', 'b10361', 13],
]

/** Those of llama.cpp v0.5.0 that scripts/fetch-llama.mjs fetches: the folder, and CUDA's version. */
const BACKENDS = [
  ['cuda', 13],
  ['cuda12', 12],
]

const BED = 'on a GPU that does not exist'

const NOT_TO_BE_HAD = [
  ['before b3889', 'npm’s oldest package with shared libraries is node-llama-cpp 3.1.1'],
  ['v0.6.0', 'neither npm nor Debian has it'],
]

/** In the table's order. `quick`: what CI runs. */
export const targets = [
  ...NPM.map(([version, release, quick = false]) => ({
    name: `llama.cpp ${release}`,
    kind: 'npm',
    from: `npm, node-llama-cpp ${version}`,
    version,
    release,
    quick,
  })),
  ...DEBIAN.map(([tool, command, quick = false]) => ({
    name: tool,
    kind: 'debian',
    from: 'Debian sid',
    command,
    quick,
  })),
  ...ALONE.map((way) => ({
    name: `ggml alone: ${way}`,
    kind: 'alone',
    from: 'npm, ggml of llama.cpp v0.5.0',
    way,
    quick: true,
  })),
  ...CUDA.map(([version, release, cuda]) => ({
    name: `llama.cpp ${release}, CUDA ${cuda}`,
    kind: 'cuda',
    from: `npm, node-llama-cpp ${version}, ${BED}`,
    version,
    release,
    cuda,
    quick: false,
  })),
  ...BACKENDS.map(([backend, cuda]) => ({
    name: `llama.cpp v0.5.0, CUDA ${cuda}`,
    kind: 'backend',
    from: `npm, node-llama-cpp 3.22.1, ${BED}`,
    backend,
    cuda,
    quick: true,
  })),
  {
    name: 'llama-completion, HIP',
    kind: 'hip',
    from: `Debian sid, ${BED}`,
    command: 'llama-completion -m DENSE -ngl 99 -p abcdefgh -n 6 -no-cnv -t 2 --seed 1 --temp 0',
    quick: true,
  },
  ...NOT_TO_BE_HAD.map(([release, why]) => ({
    name: `llama.cpp ${release}`,
    kind: 'none',
    from: '',
    why,
    quick: true,
  })),
]
