import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import { ROOT } from './root.ts'
import { filesIn, nodesOf, parse } from './sources.ts'

/** House rules of files that other users may have put where this program looks. */

const ALL = [...filesIn('lib'), ...filesIn('bin')].map(parse)

describe('places that everybody can guess: the cache, the temporary folder, the home folder', () => {
  /** Files that read nothing there that another user could have put there, though they do not call `isOwn`. */
  const EXCUSED: Readonly<Record<string, string>> = {
    'bin/trace-file.ts': 'a new file, which loses its name before it is written',
    'lib/node/record/recorder-library.ts': 'a folder that temporaryFolder makes',
    'native/peaks/libraries.c': 'a new file, which loses its name before it is read',
  }
  const VARIABLES = /^(HOME|TMPDIR|XDG_\w+|LLAMA_CACHE|HF_\w+)$/
  const isPlace = (text: string) => VARIABLES.test(text) || /^(\/var)?\/tmp(\/|$)|^~\//.test(text)
  const namesPlace = (file: ts.SourceFile) =>
    nodesOf(file).some(
      (node) =>
        (ts.isIdentifier(node) && /^(tmpdir|homedir)$/.test(node.text)) ||
        (ts.isStringLiteral(node) && isPlace(node.text)) ||
        (ts.isPropertyAccessExpression(node) && VARIABLES.test(node.name.text)),
    )
  const calls = (file: ts.SourceFile, name: string) =>
    nodesOf(file).some((node) => ts.isCallExpression(node) && node.expression.getText() === name)

  test('are read by isOwn only', () => {
    const inC = filesIn('native', '.c').filter((path) =>
      [...readFileSync(join(ROOT, path), 'utf8').matchAll(/"([^"\n]*)"/g)].some(([, text]) => isPlace(text!)),
    )
    const naming = ALL.filter(namesPlace)
    const unchecked = naming.filter((file) => !calls(file, 'isOwn')).map(({ fileName }) => fileName)
    expect([...unchecked, ...inC].sort()).toEqual(Object.keys(EXCUSED).sort())
    expect(naming.length - unchecked.length).toBeGreaterThanOrEqual(4)
  })

  test('are asked for by isCached where the path of a file in the cache is needed', () => {
    const users = ALL.filter((file) => calls(file, 'cachedPath'))
    expect(users.length).toBeGreaterThan(1)
    expect(users.filter((file) => !calls(file, 'isCached')).map(({ fileName }) => fileName)).toEqual([])
  })
})
