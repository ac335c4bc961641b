import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** Control groups of either version, made for a test. */

const ROOT = '/sys/fs/cgroup'
/** Those of version 2 need the controller in the groups above. */
const isSecond = existsSync(join(ROOT, 'cgroup.controllers'))

const folderOf = (controller: string) =>
  join(isSecond ? ROOT : join(ROOT, controller), `ggml2perfetto-test-${process.pid}`)

/** A group with a limit. `before`: of a command, which then runs in it; `remove` once it has ended. */
export interface ControlGroup {
  readonly before: readonly string[]
  remove(): Promise<void>
}

function groupWith(controller: string, settings: Readonly<Record<string, string>>): ControlGroup {
  const folder = folderOf(controller)
  mkdirSync(folder)
  const remove = async () => {
    for (let left = 100; ; left--) {
      try {
        return rmdirSync(folder)
      } catch (error) {
        // The kernel needs a moment to see that the processes have ended.
        if (left === 0) throw error
        await sleep(50)
      }
    }
  }
  try {
    for (const [name, value] of Object.entries(settings)) writeFileSync(join(folder, name), value)
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  return { before: ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder], remove }
}

/** A group with so much CPU time in each 100 ms: less than a busy machine leaves a program. */
export const withCpuLimit = (us: number) =>
  groupWith(
    'cpu',
    isSecond ? { 'cpu.max': `${us} 100000` } : { 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': `${us}` },
  )

/** A group with so much memory. */
export const withMemoryLimit = (bytes: number) =>
  groupWith('memory', { [isSecond ? 'memory.max' : 'memory.limit_in_bytes']: `${bytes}` })

/** Can they be made here, for both? */
export async function hasControlGroups(): Promise<boolean> {
  try {
    await withCpuLimit(100_000).remove()
    await withMemoryLimit(1 << 30).remove()
    return true
  } catch {
    return false
  }
}
