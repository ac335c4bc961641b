import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'
import * as self from 'node:process'
import { callerOfSudo } from './outputs.ts'

/** The state of a connection in /proc/net/tcp. */
const ESTABLISHED = '01'

/**
 * Is the other end of a connection within this machine a program of this user, of root, or of the user who called sudo? Where the system does not
 * report it (not Linux), every program counts as one.
 */
export function isOwnPeer({ remoteAddress, remotePort, localAddress, localPort }: Socket): boolean {
  if (self.platform !== 'linux') return true
  const [peer, here] = [endOf(remoteAddress, remotePort), endOf(localAddress, localPort)]
  const owners = ['tcp', 'tcp6'].flatMap((name) =>
    linesOf(`/proc/net/${name}`).flatMap((line) => {
      const [, local, remote, state, , , , uid] = line.trim().split(/\s+/)
      const isPeer = state === ESTABLISHED && local!.endsWith(peer) && remote!.endsWith(here)
      return isPeer ? [Number(uid)] : []
    }),
  )
  const own = [0, self.geteuid!(), callerOfSudo()?.uid]
  return owners.length > 0 && owners.every((uid) => own.includes(uid))
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').trim().split('\n').slice(1)
  } catch {
    return [] // a system without IPv6
  }
}

/** An end of a connection as in /proc/net/tcp, and the end of it in /proc/net/tcp6: the bytes of the address as one number of this machine. */
function endOf(address = '', port = 0): string {
  const bytes = address
    .replace(/^::ffff:/, '')
    .split('.')
    .map(Number)
  const hex = (number: number, digits: number) => number.toString(16).toUpperCase().padStart(digits, '0')
  const ordered = endianness() === 'LE' ? bytes.reverse() : bytes
  return `${ordered.map((byte) => hex(byte, 2)).join('')}:${hex(port, 4)}`
}
