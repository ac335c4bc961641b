import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'

/**
 * Plain technical English: a log contains or records something, a function returns or reports it. These words and phrases
 * are old-fashioned or have several meanings, and no text of the project uses them: comments, names, messages, docs.
 */
const FORBIDDEN: readonly RegExp[] = [
  /\b(un)?(tell|tells|told|telling)\b/i, // contains, records, reports, shows
  / besides?( [a-z]|$)/i, // next to, together with, except
  /\b(stands?|stood|standing)\b/i, // is
  /\b(comes?|came|coming) by\b/i, // found, obtained
  /\b(goes|going|went) on\b/i, // continues
  /\b(lets?|letting) go of\b/i, // frees, releases
  /\bwhose doing\b/i,
  /\b(is|are|was|were) said (of|to)\b/i,
  /\bone['’]s own\b/i, // custom, separate
  /\b(bears|borne)\b/i, // contains
  /\b(makes of|takes in)\b/i,
  /\blook(s|ed)? whether\b/i, // checks
  /\bhand(s|ed|ing)? (over|out|on)\b/i, // passes, returns
  /\b(lies|lay|lain)\b/i, // is
  /\banew\b/i, // again
  /\b(hence|thence|whence|thereof)\b/i,
  /\b(lest|ere|folk)\b/i,
  /\b(can|cannot|could|to) be had\b/i, // is available
  /\bhas? to say\b/i, // contains
  /\b(hears?|heard|learnt)\b/i,
]

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ROOMS = ['lib', 'bin', 'native', 'proto', 'scripts', 'examples', 'docs', 'README.md', 'SKILL.md', 'CHANGELOG.md']
const TEXTS = /\.(ts|mts|mjs|c|h|bt|sh|proto|md)$|\/Makefile$/

/** Made by tools, or by other tests meanwhile, or old texts of which tables keep a copy. */
const isOurs = (path: string) => !/\/(build|generated|texts)\/|\.tmp\./.test(path)

const files = ROOMS.flatMap((room) =>
  statSync(join(ROOT, room)).isFile()
    ? [room]
    : readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' }).map((name) =>
        posix.join(room, name.replaceAll('\\', '/')),
      ),
).filter((path) => TEXTS.test(path) && isOurs(path))

/** Lines `path:line: word`. */
function findings(path: string): string[] {
  return readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .flatMap((line, i) =>
      FORBIDDEN.flatMap((word) => {
        const found = word.exec(line)
        return found ? [`${path}:${i + 1}: ${found[0]}`] : []
      }),
    )
}

test('no text contains a forbidden word', () => {
  expect(files.flatMap(findings)).toEqual([])
})
