/** What several causes use: processes and control groups that are gone when they are undone. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process that takes one CPU as far as the kernel gives it; returns what ends it. */
export function hog(cpu) {
  const child = spawn('taskset', ['-c', `${cpu}`, 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' })
  return () => child.kill('SIGKILL')
}

/**
 * A control group of version 1 with these settings. `enter`: a command that becomes the program in it. It is empty when it is undone, as
 * the program has ended; the kernel needs a moment to see so.
 */
export function controlGroup(controller, settings) {
  const folder = join('/sys/fs/cgroup', controller, `ggml2perfetto-diagnosis-${process.pid}`)
  mkdirSync(folder)
  const undo = () => {
    for (let left = 100; ; left--) {
      try {
        return rmdirSync(folder)
      } catch (error) {
        if (left === 0) throw error
        execFileSync('sleep', ['0.05'])
      }
    }
  }
  try {
    for (const [name, value] of Object.entries(settings)) writeFileSync(join(folder, name), `${value}`)
  } catch (error) {
    undo()
    throw error
  }
  return { folder, enter: ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder], undo }
}

/** A file to which the kernel swaps, of so many MiB; returns what ends it. */
export function swapFile(path, size) {
  const undo = () => {
    spawnSync('swapoff', [path], { stdio: 'ignore' })
    rmSync(path, { force: true })
  }
  try {
    execFileSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=1M', `count=${size}`], { stdio: 'ignore' })
    chmodSync(path, 0o600)
    execFileSync('mkswap', [path], { stdio: 'ignore' })
    execFileSync('swapon', [path])
  } catch (error) {
    undo()
    throw error
  }
  return undo
}

/** Removes a file from the page cache. */
export const dropFromCache = (path) =>
  execFileSync('dd', [`of=${path}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })

/** Waits until a server answers; ends with the process. */
export async function untilUp(url, child) {
  while (child.exitCode === null && child.signalCode === null) {
    const isUp = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isUp) return
    await sleep(50)
  }
}
