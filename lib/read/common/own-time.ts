/** What llama.cpp's logger writes before a message: the time since the program's start (minutes, seconds, ms, µs), and the level. */
export const OWN_TIME = /^(\d{1,7})\.(\d\d)\.(\d{3})\.(\d{3}) (?:[IWED] )?/

/** A line without that, and its time in ns; undefined: the line has none. */
export function ownTime(line: string): { readonly message: string; readonly ns: number } | undefined {
  const found = OWN_TIME.exec(line)
  if (!found) return undefined
  const [prefix, minutes, seconds, ms, us] = found
  const ns = ((Number(minutes) * 60 + Number(seconds)) * 1e6 + Number(ms) * 1e3 + Number(us)) * 1e3
  return { message: line.slice(prefix.length), ns }
}
