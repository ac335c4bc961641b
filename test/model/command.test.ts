import { expect, test } from '@jest/globals'
import { modelsOfCommand } from '../../lib/model/command.ts'

/** The models that a command line names. */

test.each<[string, string[]]>([
  ['llama-cli -m /m/tiny.gguf -p hi', ['/m/tiny.gguf']],
  ['llama-cli -p hi --model /m/tiny.gguf', ['/m/tiny.gguf']],
  ['llama-cli --model=/m/tiny.gguf', ['/m/tiny.gguf']],
  ['/usr/bin/llama-cli -m=/m/tiny.gguf', ['/m/tiny.gguf']],
  ['python3 -m llama_cpp.server --model /m/tiny.gguf', ['/m/tiny.gguf']],
  ['python3 -m llama_cpp.server', []],
  ['python3 -u -X dev -m llama_cpp.server -m /m/tiny.gguf', ['/m/tiny.gguf']],
  ['/opt/venv/bin/python3.12 -Im llama_cpp.server --model=/m/tiny.gguf', ['/m/tiny.gguf']],
  ['python3 -mllama_cpp.server --model /m/tiny.gguf', ['/m/tiny.gguf']],
  ['python3 server.py -m /m/tiny.gguf', ['/m/tiny.gguf']],
  ['python3 -m vllm.entrypoints --model org/name', ['org/name']],
  ['numactl -m 0 llama-cli -m /m/tiny.gguf', ['/m/tiny.gguf']],
  ['numactl -N 0 -m 0 ./run', []],
  ['numactl --membind=0 --cpunodebind=0 python3 -m llama_cpp.server --model a.gguf', ['a.gguf']],
  ['env LD_PRELOAD=x.so A=1 llama-cli -m a.gguf', ['a.gguf']],
  ['env -u HOME nice -n 5 taskset -c 0,1 python3 -m llama_cpp.server', []],
  ['nice -n 19 ionice -c 3 taskset 0x3 llama-bench -m a.gguf', ['a.gguf']],
  ['timeout -k 1 60 sudo -u me numactl -m 1 /x/llama-cli --model a.gguf', ['a.gguf']],
  ['OMP_NUM_THREADS=4 python -m pkg', []],
  ['llama-bench -m a.gguf -m b.gguf', ['a.gguf', 'b.gguf']],
  ['llama-bench -m a.gguf,b.gguf -n 8', ['a.gguf', 'b.gguf']],
  ["llama-cli -m '/m/my model.gguf' -p x", ['/m/my model.gguf']],
  ['llama-cli --model="/m/my model.gguf" -p x', ['/m/my model.gguf']],
  ['llama-cli -m /m/my model.gguf -p see other.gguf', ['/m/my model.gguf']],
  ['llama-cli --model /m/model.bin -p see other.gguf', ['/m/model.bin']],
  ["llama-cli -m a.gguf -p it's -n 4", ['a.gguf']],
  ['whisper-cli -m ggml-base.bin -f a.wav', ['ggml-base.bin']],
  ['llama-speculative-simple -m a.gguf -md draft.gguf', ['a.gguf']],
  ['llama-cli -m', []],
  ['llama-cli -m --verbose', []],
  ['constructor -m a.gguf', ['a.gguf']],
  ['', []],
])('%s', (command, models) => {
  expect(modelsOfCommand(command)).toEqual(models)
})
