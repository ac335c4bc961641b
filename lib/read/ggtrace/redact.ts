/**
 * Replaces secrets in a command line, for logs of recorders that do not (native/common/redact.c). Here the words of the
 * command are joined by blanks, so that a value with blanks is not recognized as one.
 */

const REDACTED = '[redacted]'
const NAME = /[A-Za-z0-9_-]+/y
const VALUE = /[^\s"'&;]+/y
const COOKIES = /[^\s"'&;]+(?:;\s*[^\s"'&;=]*=[^\s"'&;]*)*/y
const WORD = /\S+/y
const USER = /:\/\/([^\s/?#"']*)@/y
const SCHEME = /(?:bearer|basic|token|digest)\s+/iy
const BEARER = /bearer\s+(?=[\w.~+/=-]{8})/iy
const BEARER_VALUE = /[\w.~+/=-]+/y
/** Forms of secrets; a part of a path (`/` or `.` before, `/` or an extension after) is none. */
const SECRET =
  /eyJ(?=[\w-]*\.)[\w.-]{20,}|(?:sk-[\w-]{12,}|(?:hf|gh[pousr])_[A-Za-z0-9]{12,}|xox[abeoprs]-[A-Za-z0-9-]{8,}|A[KS]IA[A-Za-z0-9]{12,}|(?:AIza[\w-]{20,}|(?:nvapi|glpat)-[\w-]{12,}|github_pat_\w{12,}))(?!\.?[\w/-])/y

/** Names, in lower case and with - for _, whose value is a secret, and exceptions. */
const SECRET_NAME =
  /password|passwd|passphrase|secret|api-?key|access-key|private-key|credential|(?:^|-)(?:token|authorization|auth|bearer|cookie|pass|pwd|signature)$|^hft$/
const HARMLESS_NAME =
  /(?:^|-)(?:file|path|dir|(?:bos|eos|eot|eog|pad|unk|sep|cls|mask|stop|start|end|max|min|num|n|per|special|image)-token)$/

/** A command line without its secrets, and their number. */
export function redactCommand(command: string): { readonly text: string; readonly count: number } {
  const scan = new CommandScan(command)
  while (scan.at < command.length) if (!scan.redactHere()) scan.copyTo(scan.at + 1)
  return { text: scan.out, count: scan.count }
}

class CommandScan {
  at = 0
  out = ''
  count = 0

  constructor(private readonly text: string) {}

  copyTo(end: number): void {
    this.out += this.text.slice(this.at, end)
    this.at = end
  }

  /** Replaces the secret at this place; false where there is none. */
  redactHere(): boolean {
    const { at, text } = this
    if (text[at] === ':') return this.redactUser()
    const before = text[at - 1] ?? ' '
    if (/[\w-]/.test(before)) return false
    const name = this.match(NAME)?.[0]
    if (name === undefined) return false
    const secret = /[/.]/.test(before) ? undefined : this.match(SECRET)?.[0]
    if (secret !== undefined) return this.redact(at, at + secret.length)
    if (this.redactNamed(name, before)) return true
    const bearer = this.match(BEARER)?.[0]
    return bearer !== undefined && this.redact(at + bearer.length, this.endOf(BEARER_VALUE, at + bearer.length))
  }

  /** Replaces the value of an option or variable with a secret's name. */
  private redactNamed(name: string, before: string): boolean {
    const { at, text } = this
    const after = at + name.length
    const isQueryKey = /[?&]/.test(before) && /^(?:key|sig)$/i.test(name)
    if (!isQueryKey && !isSecretName(name)) return false
    const [separator = ''] = this.match(/["']? *[=:][=:"' ]*|\s+/y, after) ?? []
    const isAssigned = /[=:]/.test(separator)
    if (!isAssigned && (separator === '' || !name.startsWith('-'))) return false
    const isWord = /\s/.test(before) && separator.startsWith('=')
    let from = isWord ? after + 1 : after + separator.length
    if (isAssigned && !isWord) from += this.match(SCHEME, from)?.[0].length ?? 0
    // Another option: `curl -k -v`.
    if (!isAssigned && text.startsWith(name.length === 2 ? '-' : '--', from)) return false
    const value = /cookie$/i.test(name) ? COOKIES : VALUE
    return this.redact(from, this.endOf(isWord || !isAssigned ? WORD : value, from))
  }

  /** At `://`: replaces the text before the @, except a user's name with a password. */
  private redactUser(): boolean {
    const { at, text } = this
    const user = this.match(USER)?.[1]
    if (user === undefined) return false
    const colon = user.indexOf(':')
    if (colon < 0 && !/https?$/i.test(text.slice(Math.max(0, at - 5), at))) return false
    return this.redact(at + 3 + colon + 1, at + 3 + user.length)
  }

  private redact(from: number, to: number): boolean {
    if (to > from && !this.text.startsWith(REDACTED, from)) this.count++
    this.copyTo(from)
    if (to > from) this.out += REDACTED
    this.at = to
    return true
  }

  private match(pattern: RegExp, at = this.at): RegExpExecArray | null {
    pattern.lastIndex = at
    return pattern.exec(this.text)
  }

  private endOf(pattern: RegExp, at: number): number {
    return at + (this.match(pattern, at)?.[0].length ?? 0)
  }
}

function isSecretName(text: string): boolean {
  const name = text.replace(/^-+/, '').toLowerCase().replaceAll('_', '-')
  if (HARMLESS_NAME.test(name)) return false
  if (/^-+(?:k|key)$/i.test(text)) return true
  return SECRET_NAME.test(name) || (/^[^a-z]*KEY$/.test(text) && name.length > 0)
}
