import { spawn } from 'node:child_process'
import { io } from './io.ts'

/** Programs that open a URL in the user's browser; the first one that exists is used. None of them runs a shell. */
const OPENERS: Readonly<Record<string, readonly (readonly [string, ...string[]])[]>> = {
  darwin: [['open']],
  win32: [['rundll32', 'url.dll,FileProtocolHandler']],
  linux: [['xdg-open'], ['wslview']],
}

/** Opens a URL in the user's browser. Returns the reason if that failed, else undefined; a failure later is reported by `onFailure`. */
export async function openBrowser(
  url: string,
  onFailure: (failure: string) => void = () => undefined,
): Promise<string | undefined> {
  const { DISPLAY, WAYLAND_DISPLAY, BROWSER, WSL_DISTRO_NAME } = io().env
  if (process.platform === 'linux' && !(DISPLAY || WAYLAND_DISPLAY || BROWSER || WSL_DISTRO_NAME)) {
    return 'there is no display here'
  }
  const openers = OPENERS[process.platform] ?? OPENERS['linux']!
  for (const [program, ...args] of openers) {
    const failure = await run(program, [...args, url], onFailure)
    if (failure !== 'ENOENT') return failure
  }
  return `there is no ${openers.map(([program]) => program).join(' or ')}`
}

/** The program may exit at once, after it has notified a running browser, or run as long as the browser does. */
const PATIENCE_MS = 2000

function run(
  program: string,
  args: readonly string[],
  onFailure: (failure: string) => void,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    // It is the user's, and continues after this process.
    const child = spawn(program, args, { stdio: 'ignore', detached: true })
    // It keeps the process alive: else nothing does, and Node ends with code 13 before the program has answered.
    const timer = setTimeout(() => {
      report = (failure) => failure !== undefined && onFailure(failure)
      resolve(undefined)
    }, PATIENCE_MS)
    let report = (failure: string | undefined): unknown => {
      clearTimeout(timer)
      return resolve(failure)
    }
    child.once('error', ({ code, message }: NodeJS.ErrnoException) => report(code ?? message))
    child.once('exit', (code, signal) => {
      const how = signal === null ? 'failed' : `was ended by ${signal}`
      report(code === 0 ? undefined : `${program} ${how}`)
    })
    child.unref()
  })
}
