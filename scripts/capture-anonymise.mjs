/** Replaces the names of foreign programs in a capture of the scheduler. Texts are Latin-1: one character per byte. */
export class Anonymiser {
  #own
  #others = new Map()

  /** `source` is the workload's source: names in quotes in it are kept. */
  constructor(source) {
    const names = [...source.matchAll(/"((?:[^"\\\n]|\\.)*)"/g)].map(([, text]) =>
      text
        .replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
        .replace(/\\(.)/g, '$1'),
    )
    this.#own = new Set([...names, 'workload', 'true'].map((name) => name.slice(0, 15)))
  }

  /** The text, with every foreign command name replaced by one of the same length. */
  text(text) {
    return text
      .split('\n')
      .map((line) => this.#line(line))
      .join('\n')
  }

  #line(line) {
    if (line.startsWith('#'))
      return line.replace(/^(# hostname : ).*/, '$1host').replace(/\/\S*\/(perf|perf\.data|workload)\b/g, '$1')
    let result = line
    for (const pattern of PATTERNS) {
      const found = pattern.exec(result)
      if (!found) continue
      for (let group = found.length - 1; group >= 1; group--) {
        const span = found.indices[group]
        if (!span) continue
        const name = found[group]
        result = result.slice(0, span[0]) + this.#of(name) + result.slice(span[1])
      }
    }
    return result
  }

  /** Always the same replacement for a name, of the same length. */
  #of(name) {
    const trimmed = name.trim()
    if (trimmed === '' || this.#own.has(trimmed) || this.#own.has(name) || KERNEL.test(trimmed)) return name
    if ([...this.#own].some((own) => own.trim().startsWith(trimmed) && trimmed.length >= 6)) return name // cut to 8
    let other = this.#others.get(trimmed)
    if (other === undefined) {
      const letter = 'pqrstuvw'[this.#others.size % 8]
      other = `${letter}${this.#others.size}`.padEnd(trimmed.length, letter).slice(0, trimmed.length)
      this.#others.set(trimmed, other)
    }
    return name.replace(trimmed, other)
  }
}

const KERNEL =
  /^(?:swapper\/\d+|kworker\/.*|rcu_.*|rcuo.*|ksoftirqd\/\d+|migration\/\d+|kcompactd\d*|<idle>|<\.\.\.>|perf|trace-cmd|bpftrace|cpuhp\/.*|khugepaged|jbd2\/.*|kswapd\d|cat|kauditd|watchdog.*|ARRAY\[.*|:?-?\d+)$/

/** Places of command names: in the left column, in fields, in trace-cmd's short forms, in lines of our own scripts. */
const PATTERNS = [
  /^(.{16})-\d+ +(?:\(|\[)/d,
  /^ *(.{1,8}?)-\d+ +\d+[A-Za-z.0-9#]{4,6} /d,
  /^(.{15,16}) +-?\d+(?:\/-?\d+)? +(?:\[\d{3}\]|\d+\.\d+:|[A-Z]{1,3} )/d,
  /^(\S.*?) +\d+ \[\d{3}\] \d+\.\d+: /d,
  /prev_comm=(.*) prev_pid=.* next_comm=(.*) next_pid=/d,
  /(?:wakeup|waking|wakeup_new|migrate_task|exit|free): +comm=(.*) pid=\S+(?: \(\d+\))? prio=/d,
  /process_fork: +comm=(.*) pid=\S+(?: \(\d+\))? child_comm=(.*) child_pid=/d,
  /(?:parent_comm)=(.*) parent_pid=.* child_comm=(.*) child_pid=/d,
  /oldcomm=(.*) newcomm=(.*) oom_score_adj=/d,
  /filename=\S*\/([^/ ]+) pid=/d,
  /sched_switch: +(.{0,15}):\d+ \[-?\d+\] \S+ ==> (.{0,15}):\d+ \[-?\d+\]$/d,
  /sched_wakeup(?:_new)?: +(.{0,15}):\d+ \[-?\d+\] CPU:\d+$/d,
  /PERF_RECORD_COMM(?: exec)?: (.*):\d+\/\d+$/d,
  /g2p switch(?: -?\d+){7} (.{16})\|(.*?)(?:\\n"\}|$)/d,
  /g2p waking(?: -?\d+){7} (.*?)(?:\\n"\}|$)/d,
  /g2p (?:fork|rename|exit|thread)(?: -?\d+){4,5} (.*?)(?:\\n"\}|$)/d,
]
