import type { CommandModule } from 'yargs'
import { nvtxListener } from '../../lib/cli.ts'
import { COMMANDS } from '../commands.ts'
import { io } from '../io.ts'
import { interruptible } from '../signals.ts'
import { note, print } from '../terminal.ts'

/** `ggml2perfetto nvtx` */
export const nvtxCommand: CommandModule = {
  ...COMMANDS.nvtx,
  builder: (yargs) =>
    yargs
      .usage(
        '$0 nvtx\n\nPrints the path of a library that logs the ranges, marks and names that a program announces through NVTX. ' +
          'It needs neither tools of NVIDIA nor a GPU. The log is $GGML2PERFETTO_OUT, or <program>-<pid>.ggtrace in the folder ' +
          'in which the program runs. `record` uses the library by itself.',
      )
      .example('NVTX_INJECTION64_PATH=$($0 nvtx) python train.py', 'then: ggml2perfetto python-<pid>.ggtrace'),
  handler: async () => {
    const onBuild = (compiler: string) => void note(`building the NVTX listener with ${compiler}, once`)
    await print(await interruptible('interrupted', () => nvtxListener({ env: io().env, onBuild })))
  },
}
