import { readFileSync } from 'node:fs'
import * as self from 'node:process'
import { UsageError } from '../../errors.ts'
import { type Environment, isLoader, linkage, type Program } from './program.ts'
import { rowOf } from './ways.ts'

/** `e_machine` and pointer width of this machine's programs, by Node's names. */
const MACHINES: Readonly<Record<string, readonly [machine: number, bits: 32 | 64]>> = {
  x64: [62, 64],
  arm64: [183, 64],
  riscv64: [243, 64],
  loong64: [258, 64],
  arm: [40, 32],
  ia32: [3, 32],
}
const SYSTEMS: Readonly<Record<string, string>> = { darwin: 'macOS', win32: 'Windows', android: 'Android' }
const AT_SECURE = 23n
/** For a message: what works everywhere. */
export const OWN_BUILD = 'link the log writer into a build of your own (docs/reference/recorder.md)'

/** The usual name of a system that Node calls `platform`. */
export const systemName = (platform: string): string => SYSTEMS[platform] ?? platform

/** Throws UsageError if recording is not possible on this system or processor. */
export function checkSystem(platform: string, arch: string): void {
  if (platform !== 'linux') {
    throw new UsageError(
      `record: runs on Linux only so far, this is ${systemName(platform)}\n` +
        `hint: record on a Linux machine; its log is converted anywhere (${rowOf('macOS, Windows')})`,
    )
  }
  if (!(arch in MACHINES)) {
    throw new UsageError(
      `record: does not know this processor (${arch}); expected ${Object.keys(MACHINES).join(', ')}\nhint: ${OWN_BUILD}`,
    )
  }
}

/** Throws UsageError if it is certain in advance that nothing of a program could be recorded. */
export async function checkRecordable(
  program: Program,
  arch: string,
  children: boolean,
  env: Environment,
): Promise<void> {
  const isStatic = program.elf.loader === undefined && !isLoader(program.executable)
  // A static program may start one that can be recorded.
  const isLost = isStatic && (!children || (await linkage(program, env)) === 'inside')
  const problem = obstacle(program, arch, isLost)
  if (problem === undefined) return
  const who = program.isScript ? `${program.name}: its interpreter ${program.executable}` : program.name
  throw new UsageError(`${who}: cannot be recorded: ${problem}`)
}

function obstacle(program: Program, arch: string, isLost: boolean): string | undefined {
  const { elf, executable } = program
  const [machine, bits] = MACHINES[arch]!
  if (elf.machine !== 0 && (elf.machine !== machine || elf.bits !== bits)) {
    const what =
      elf.bits === bits ? `built for another processor (ELF machine ${elf.machine})` : `a ${elf.bits}-bit program`
    return `it is ${what}; the recorder is ${bits}-bit ${arch} (${rowOf('program of another processor')})`
  }
  if (isLost) {
    return (
      'it is linked statically, and the system loads no other library into it\n' +
      `hint: build it with shared libraries, or ${OWN_BUILD}; if it only starts the program that computes: without --no-children (${rowOf('program without shared libraries')})`
    )
  }
  if (!raisesRights(program)) return undefined
  return (
    `it runs with its owner's rights (setuid or setgid), so that the loader ignores LD_PRELOAD\n` +
    `hint: record a copy, which has them no longer: cp ${executable} . (${rowOf('program with more rights')})`
  )
}

function raisesRights({ stats }: Program): boolean {
  const { mode, uid, gid } = stats
  return (!!(mode & 0o4000) && uid !== self.geteuid?.()) || ((mode & 0o2010) === 0o2010 && gid !== self.getegid?.())
}

/** Does a started process have more rights than this one, so that the loader ignores LD_PRELOAD? */
export function isSecure(pid: number): boolean {
  try {
    const bytes = readFileSync(`/proc/${pid}/auxv`)
    for (let at = 0; at + 16 <= bytes.length; at += 16) {
      if (bytes.readBigUInt64LE(at) === AT_SECURE) return bytes.readBigUInt64LE(at + 8) !== 0n
    }
    return false
  } catch (error) {
    // A process with more rights cannot be inspected, nor can one that has ended, which means nothing here.
    return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '') && isRunning(pid)
  }
}

function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** For a message: builds whose calls can be seen. */
export const OTHER_BUILD = `build it with -DBUILD_SHARED_LIBS=ON, or ${OWN_BUILD}`

/** For a message. */
export const INSIDE = 'ggml is built into it (static libraries)'

/** Why the functions of a program that contains ggml cannot be found (native/recorder/program.h); undefined: they may be. */
export function problemInside({ elf }: Program): string | undefined {
  if (elf.machine !== MACHINES['x64']![0]) {
    const row = rowOf('program that contains ggml, on arm64')
    return `${INSIDE}, and its calls are seen on x64 only: ${OTHER_BUILD} (${row})`
  }
  if (elf.symbols.size + elf.exports.size > 0) return undefined
  const why = 'it has no symbols, by which its functions could be found'
  return `${INSIDE}, and ${why}: build it without strip, or ${OTHER_BUILD} (${rowOf('stripped program that contains ggml')})`
}
