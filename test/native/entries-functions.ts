import { randomOf } from '../../lib/model/random.ts'

/**
 * Functions in C for entries.test.ts, whose code begins in many ways: shapes that are chosen one by one, with random terms in them. Each is
 * `long <name>(long a, long b, long c)`, calls only those before it, and depends on nothing but its arguments and `test_state`.
 */

type Random = () => number

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]!

/** A term without undefined behaviour: of unsigned numbers. */
function term(random: Random, depth = 3): string {
  if (depth === 0)
    return pick(random, [
      '(unsigned long) a',
      '(unsigned long) b',
      '(unsigned long) c',
      `${Math.floor(random() * 1e6)}ul`,
    ])
  const [left, right] = [term(random, depth - 1), term(random, depth - 1)]
  return pick(random, [
    () => `(${left} + ${right})`,
    () => `(${left} * ${right})`,
    () => `(${left} ^ ${right} >> ${1 + Math.floor(random() * 30)})`,
    () => `(${left} / (${right} | 1))`,
    () => `(unsigned long) (long) (${left} % 1000 * 0.5 + (double) (${right} % 77))`,
  ])()
}

interface Context {
  readonly random: Random
  readonly name: string
  /** A function of the same file. */
  readonly other: string
}

const SHAPES: Readonly<Record<string, (context: Context) => string>> = {
  leaf: ({ random }) => `return (long) ${term(random)};`,
  // gcc puts nothing but the result into a register: two instructions of less than five bytes.
  short: () => 'return a;',
  constant: ({ random }) => `(void) a; (void) b; (void) c; return ${Math.floor(random() * 1e9)};`,
  global: ({ random }) => `test_state += (long) (${term(random, 1)} & 7); return test_state;`,
  address: ({ random }) =>
    `static long kept[8]; kept[a & 7] = (long) ${term(random, 2)}; return kept[a & 7] + (b == c);`,
  early: ({ random, other }) => `if (!a) return b; long x = ${other}(b, c, 1); return x + (long) ${term(random, 2)};`,
  outside: ({ random }) => `long x = labs(a) + atol(test_text); return x + (long) ${term(random, 2)};`,
  pointer: ({ other }) => `test_call * volatile call = ${other}; return call(c, b, a) + 1;`,
  tail: ({ random, other }) => `return ${other}((long) ${term(random, 1)}, a, b);`,
  'tail pointer': () => 'return test_pointer(c, a, b);',
  // The caller may expect that registers of a leaf are kept.
  caller: ({ random, other }) =>
    `double d = (double) a * 1.5, e = (double) b; long x = ${other}(a, b, c), y = ${other}(x & 15, c, a); return x + (long) ((d + e) * 2) + y + (long) ${term(random, 2)};`,
  recursion: ({ name }) => `return a <= 0 || a > 20 ? b : 1 + ${name}(a - 1, c, b) * 3;`,
  // Its loop may begin where the function does.
  loop: () => 'do { b += c; c ^= b >> 1; } while (--a > 0 && a < 50); return b + c;',
  'tail recursion': ({ name }) => `return a <= 0 || a > 20 ? b + c : ${name}(a - 1, c + 1, b * 3);`,
  table: ({ random }) =>
    `switch (a & 7) { ${Array.from({ length: 8 }, (_, i) => `case ${i}: return (long) ${term(random, 1)} + ${i};`).join(' ')} } return 0;`,
  // The loop jumps by a table, and the table may have a place at the begin.
  machine: () =>
    `for (long left = 20; left > 0; left--) switch ((unsigned long) a % 6) {
       case 0: a += b; break; case 1: a ^= 3; break; case 2: b++; a += 4; break;
       case 3: a = c & 7; break; case 4: a++; break; default: return a + b; } return b;`,
  stack: ({ random, other }) =>
    `char text[5000]; memset(text, (int) a, sizeof text); long x = ${other}(a, b, c); return text[(unsigned long) b % 5000] + x + (long) ${term(random, 1)};`,
  unlikely: ({ random }) =>
    `if (__builtin_expect(test_state == -1, 0)) { printf("%ld\\n", a); abort(); } return (long) ${term(random)};`,
  many: ({ random, other }) =>
    `long x = ${other}(1, a, b), y = ${other}(2, b, c), z = ${other}(3, c, a); return x * y + z * a - b * c + (long) ${term(random)};`,
}

/** Functions in assembly, and what becomes of each. `74` is a short je, which assemblers make long where they like. */
const ASSEMBLY: Readonly<Record<string, readonly [code: string, expected: string]>> = {
  loop: ['add $3, %rsi; dec %rdi; jg f_asm_loop; mov %rsi, %rax; ret', 'it jumps to its first instructions'],
  inside: [
    'xor %eax, %eax; 1: inc %eax; cmp $9, %eax; jl 1b; add %rsi, %rax; ret',
    'it jumps to its first instructions',
  ],
  behind: ['mov $1, %eax; 1: inc %eax; cmp $9, %eax; jl 1b; add %rsi, %rax; ret', 'keeping'],
  call: ['call f_asm_inner; inc %rax; ret', 'it begins with a call'],
  trap: ['xor %eax, %eax; .byte 0x74, 1; int3; mov %rsi, %rax; ret', 'it begins with a breakpoint'],
  count: [
    'xor %eax, %eax; mov %edi, %ecx; jrcxz 1f; inc %eax; 1: ret',
    'it begins with an instruction that cannot be moved',
  ],
  unknown: [
    'xor %eax, %eax; .byte 0x74, 6, 0x8f, 0xe8, 0x78, 0xc0, 0xc0, 0x01; mov %rdi, %rax; ret',
    'it begins with an instruction that is not known here',
  ],
  short: ['mov %rdi, %rax; ret', 'it is shorter than a jump'],
  inner: ['endbr64; lea 5(%rdi, %rsi, 2), %rax; ret', 'keeping'],
  relative: ['mov f_asm_data(%rip), %rax; add %rdi, %rax; ret', 'keeping'],
  // An immediate follows the distance.
  immediate: ['cmpl $7, f_asm_data(%rip); sete %al; movzbl %al, %eax; ret', 'keeping'],
  branches: ['test %edi, %edi; je 1f; js 2f; mov $1, %eax; ret; 1: mov $2, %eax; ret; 2: mov $3, %eax; ret', 'keeping'],
  leap: ['jmp 1f; .skip 8, 0x90; 1: mov %rdx, %rax; ret', 'keeping'],
  jump: ['jmp f_asm_inner', 'keeping'],
}

/** What becomes of the functions in assembly, by name. */
export const EXPECTED: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(ASSEMBLY).map(([name, [, expected]]) => [`f_asm_${name}`, expected]),
)

/** Text of the functions, and of a file with their hooks. */
export function functionsOf(
  seed: number,
  rounds: number,
): { functions: string; hooks: string; names: readonly string[] } {
  const random = randomOf(seed)
  const names: string[] = []
  const definitions: string[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [shape, body] of Object.entries(SHAPES)) {
      const name = `f_${shape.replaceAll(' ', '_')}_${round}`
      const other = names.length > 0 ? pick(random, names) : 'test_plain'
      const isApart = random() < 0.8
      definitions.push(
        `${isApart ? '__attribute__((noinline)) ' : ''}long ${name}(long a, long b, long c) { ${body({ random, name, other })} }`,
      )
      names.push(name)
    }
  }
  const assembly = Object.entries(ASSEMBLY).map(([name, [code]]) => {
    const label = `f_asm_${name}`
    return `".globl ${label}\\n.type ${label}, @function\\n${label}: ${code}\\n.size ${label}, . - ${label}\\n.skip 16, 0x90\\n"`
  })
  names.push(...Object.keys(EXPECTED))
  const includes = '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "entries-program.h"\n'
  const functions = `${includes}volatile long test_state;
static const char * volatile test_text = "12";
__attribute__((noinline)) static long test_plain(long a, long b, long c) { return a * 3 + b - c; }
test_call * test_pointer = test_plain;
long f_asm_data = 7;
__asm__(".text\\n"
${assembly.join('\n')});
${definitions.join('\n')}\n`
  const hooks = names.map(
    (name) => `test_call ${name};
static test_call * real_${name};
static long hits_${name};
static long hook_${name}(long a, long b, long c) { hits_${name}++; test_spoil(); const long result = real_${name}(a, b, c); test_spoil(); return result; }`,
  )
  const list = names.map((name) => `{"${name}", ${name}, hook_${name}, &real_${name}, &hits_${name}},`)
  return {
    functions,
    hooks: `${includes}${hooks.join('\n')}\nconst struct test_function test_functions_list[] = {\n${list.join('\n')}\n};\nconst int test_count = ${names.length};\n`,
    names,
  }
}
