import { describeEnding, type OwnedChild, UsageError } from '../../../lib/cli.ts'
import { callOf, shortened } from '../answer.ts'
import { startCli } from '../child.ts'
import { type Call, LOGS, placesOf, type Tool, whole } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
  readonly wait_s?: number
}

const [WAIT_S, WAIT_S_MAX] = [600, 3600]

/** The command that serves a trace: one at a time, as its port is a fixed one. */
let serving: OwnedChild | undefined

/** The tool `open`. */
export const openTool: Tool<Arguments> = {
  name: 'open',
  title: 'A URL of the timeline',
  description:
    'A URL of ui.perfetto.dev for a person: it shows the trace of the logs, or a trace, which this machine serves once, to a browser on it. ' +
    'The trace does not leave the machine.',
  input: { logs: LOGS, wait_s: whole('Seconds that the URL is valid', 1, WAIT_S_MAX) },
  required: ['logs'],
  evidence: {
    url: { type: 'string', description: 'For a browser on this machine' },
    valid_s: { type: 'integer', description: 'Seconds that it is valid, once' },
  },
  isReadOnly: true,
  async run({ logs, wait_s: wait = WAIT_S }, session, call) {
    const places = await placesOf(logs, session)
    serving?.kill()
    const words = ['open', ...places.map(({ path }) => path), '--no-browser', '--wait', `${wait}`]
    const command = startCli(words, session.places.first)
    serving = command
    void command.ended.then(() => {
      if (serving === command) serving = undefined
    })
    const { url, verdict } = await urlOf(command, session.options.timeoutMs, call)
    await session.places.refuseChanged(places).catch((error) => {
      command.kill()
      throw error
    })
    return shortened({
      verdict: verdict ?? 'the trace is served',
      evidence: { url, valid_s: wait },
      check: [callOf('summary', { logs }, 'the same run in words')],
      next: [callOf('why', { logs }, 'the findings, which the trace has in the row Findings, too')],
      left: null,
    })
  },
}

/** The URL that the command prints when it serves the trace, and the line before. */
function urlOf(
  command: OwnedChild,
  limitMs: number,
  { signal, onTick }: Call,
): Promise<{ readonly url: string; readonly verdict: string | undefined }> {
  return new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', '']
    const startedMs = performance.now()
    const stop = (message: string) => {
      command.kill()
      fail(new UsageError(message))
    }
    const limit = setTimeout(() => stop(`no URL after ${limitMs / 1000} s, the limit (--timeout)`), limitMs)
    const ticks = setInterval(() => onTick(performance.now() - startedMs, limitMs), 1000)
    const onAbort = () => stop('the call was cancelled')
    const release = () => {
      clearTimeout(limit)
      clearInterval(ticks)
      signal.removeEventListener('abort', onAbort)
    }
    const fail = (error: Error) => {
      release()
      reject(error)
    }
    signal.addEventListener('abort', onAbort)
    command.child.stdin!.end()
    command.child.stderr!.on('data', (piece: Buffer) => {
      stderr = `${stderr}${piece}`.slice(-4096)
    })
    command.child.stdout!.on('data', (piece: Buffer) => {
      stdout = `${stdout}${piece}`.slice(0, 1 << 16)
      const url = /^https?:\/\/\S+$/m.exec(stdout)?.[0]
      if (url === undefined) return
      release()
      const [first] = stdout.split('\n')
      resolve({ url, verdict: first === url ? undefined : first })
    })
    void command.ended.then((ending) =>
      fail(new UsageError(stderr.replace(/^[\s\S]*error: /, '').trim() || describeEnding('the command', ending))),
    )
  })
}
