import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import ts from 'typescript'
import { C_FLAGS, INCLUDE } from '../compile.ts'
import { ROOT } from '../root.ts'
import { filesIn, nodesOf, parse, place } from '../sources.ts'
import { ensureLlama, hasLlama } from './testbed.ts'

/**
 * Programs that call llama.cpp's functions, or stand for them, pass what the true functions take: the recorder reads arguments, also those that a
 * program that declares a function by hand forgets. A program of a test includes llama.cpp's headers, or stand-in.h.
 */

/** Functions that no header declares which can be had here, and why they are declared by hand. */
const WITHOUT_HEADER: Readonly<Record<string, string>> = {
  ggml_barrier: 'a function within ggml, in no header that is installed',
  llama_process: 'of llama.cpp 0.7.0',
}

/** What begins like a declaration, and is a statement. */
const KEYWORDS = /\b(return|else|if|while|for|do|case|define|extern\s+"C")\b/
/** A function that a source declares or defines: a type, a name, parameters, and `;` or `{`. */
const DECLARED =
  /(?<=^|[;{}\n])\s*((?:\w+|\w+\(\w+\)|\*|__attribute__\(\([^)]*\)\))(?:\s+|\s*\*\s*|(?<=\))))+((?:llama|ggml|gguf)_\w+)\s*\((?!\*)[^;{}=]*?\)\s*[;{]/g
const INCLUDES = /#include ["<](?:llama|ggml[\w-]*|gguf|(?:[\w./]*\/)?stand-in)\.h[">]/

/** Functions of llama.cpp's that a C source declares or defines itself. */
function declaredIn(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|#(?!include)[^\n]*/g, '')
  return [...code.matchAll(DECLARED)].filter(([whole]) => !KEYWORDS.test(whole)).map(([, , name]) => name!)
}

/** Sources in files, and those in texts of scripts and tests, with the place of each. */
const SOURCES = [
  ...['test', 'scripts', 'native/test'].flatMap((folder) =>
    ['.c', '.cc', '.cpp', '.h']
      .flatMap((ending) => filesIn(folder, ending))
      .map((path) => ({ at: path, text: readFileSync(join(ROOT, path), 'utf8') })),
  ),
  ...[...filesIn('test'), ...filesIn('scripts', '.mjs')].map(parse).flatMap((file) =>
    nodesOf(file)
      .filter((node) => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node))
      .map((node) => ({ at: place(file, node), text: ts.isStringLiteralLike(node) ? node.text : node.getText() })),
  ),
].filter(({ at }) => !at.startsWith('test/llama/stand-in.'))

describe('sources that declare functions of llama.cpp', () => {
  test('a declaration is recognised, and a call is none', () => {
    const declared = [
      'int llama_decode(void * context);',
      'struct ggml_tensor * ggml_mul(struct ggml_context * a,\n  int b) {',
      'extern const char *ggml_version(void);',
      'F(int) llama_encode(void * c, struct batch b) { return 0; }',
      'int x; void ggml_log_set(void (*log)(int), void * data);',
      '__attribute__((noipa)) int llama_decode() {',
    ]
    const calls = [
      'llama_decode(0);',
      'return llama_decode(0);',
      'if (x) llama_decode(0);',
      'int a = llama_decode(0);',
      'else llama_free(c);',
      '/* int llama_decode(void); */',
      '(void) llama_decode(c, b);',
    ]
    expect(declared.map(declaredIn).map((names) => names.length)).toEqual(declared.map(() => 1))
    expect(calls.flatMap((text) => declaredIn(`int main(void) {\n  ${text}\n}`))).toEqual([])
  })

  test('include its headers, or stand-in.h', () => {
    const by = SOURCES.map(({ at, text }) => ({ at, names: declaredIn(text), isChecked: INCLUDES.test(text) }))
    expect(by.filter(({ names, isChecked }) => names.length && isChecked).length).toBeGreaterThan(8)
    const wrong = by.flatMap(({ at, names, isChecked }) => {
      const unknown = isChecked ? [] : names.filter((name) => !(name in WITHOUT_HEADER))
      return unknown.map((name) => `${at}: ${name} is declared by hand, and stand-in.h is not included`)
    })
    expect(wrong).toEqual([])
    const used = new Set(by.flatMap(({ names }) => names))
    expect(Object.keys(WITHOUT_HEADER).filter((name) => !used.has(name))).toEqual([])
  })

  test('are compiled with warnings as errors', () => {
    const own = /(?:execFile(?:Sync)?|execute)\(\s*'(?:cc|gcc|clang)',(?! \['-print)/
    const wrong = filesIn('test')
      .filter((path) => path !== 'test/compile.ts' && own.test(readFileSync(join(ROOT, path), 'utf8')))
      .map((path) => `${path}: calls the compiler itself, not cc of test/compile.ts`)
    expect(wrong).toEqual([])
  })
})

const llamaTest = hasLlama() ? test : test.skip

describe("llama.cpp's own headers (needs linux-x64, cc and git)", () => {
  /** What the compiler says of a source, with those headers. */
  const errorsOf = (source: string, ...flags: readonly string[]) =>
    spawnSync('cc', [...C_FLAGS, '-fsyntax-only', ...flags, '-x', 'c', '-'], { input: source, encoding: 'utf8' }).stderr

  const HEADERS = '#include <stddef.h>\n#include "ggml-backend.h"\n#include "llama.h"\n'

  llamaTest('declare each function as stand-in.h does', async () => {
    await ensureLlama()
    expect(errorsOf(`${HEADERS}#include "stand-in.h"\n`, '-DBY_HAND')).toBe('')
    const other = `${HEADERS}int llama_decode(void * context);\n`
    expect(errorsOf(other)).toMatch(/conflicting types for ‘?'?llama_decode/)
  })

  llamaTest('lay out each structure as stand-in.h does', async () => {
    await ensureLlama()
    const FIELDS = {
      llama_batch: ['n_tokens', 'token', 'embd', 'pos', 'n_seq_id', 'seq_id', 'logits'],
      ggml_init_params: ['mem_size', 'mem_buffer', 'no_alloc'],
    }
    const text = readFileSync(new URL('stand-in.h', import.meta.url), 'utf8')
    expect([...text.matchAll(/^struct (\w+) \{/gm)].map(([, name]) => name).sort()).toEqual(Object.keys(FIELDS).sort())
    // In a second compilation, as one cannot have both definitions of a structure.
    const sizes = Object.entries(FIELDS).flatMap(([name, fields]) => [
      `sizeof(struct ${name})`,
      ...fields.flatMap((field) => [`offsetof(struct ${name}, ${field})`, `sizeof(((struct ${name} *) 0)->${field})`]),
    ])
    const valuesOf = (includes: string, ...flags: readonly string[]) => {
      const source = `${includes}\nconst size_t values[] = {${sizes.join(', ')}};`
      const options = [...C_FLAGS, ...flags, '-S', '-x', 'c', '-', '-o', '-']
      const { stdout, stderr } = spawnSync('cc', options, { input: source, encoding: 'utf8' })
      expect(stderr).toBe('')
      return stdout.split('\nvalues:\n')[1]!.match(/^\s*\.(?:quad|xword|zero)\s+\d+/gm)
    }
    const own = valuesOf(HEADERS)
    expect(own!.length).toBeGreaterThan(10)
    expect(valuesOf('#include "stand-in.h"', '-DBY_HAND')).toEqual(own)
  })

  llamaTest('do not declare what is declared by hand', async () => {
    await ensureLlama()
    const headers = readdirSync(INCLUDE).map((name) => readFileSync(join(INCLUDE, name), 'utf8'))
    const declared = Object.keys(WITHOUT_HEADER).filter((name) =>
      headers.some((text) => new RegExp(`\\b${name}\\s*\\(`).test(text)),
    )
    expect(declared).toEqual([])
  })
})
