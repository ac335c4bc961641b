import { isLong } from '../long.ts'

/** What a cell of a text may hold instead of what it should. */
export const VALUES: readonly string[] = [
  ...[
    '',
    '0',
    '-0',
    '-1',
    '1.5',
    '1e300',
    '-1e300',
    'NaN',
    'inf',
    'nan',
    'abc',
    '0x10',
    ' 5 ',
    '1_000',
    '٣',
    '+7',
    '.',
  ],
  ...['9007199254740991', '9007199254740993', '9223372036854775807', '9223372036854775808', '18446744073709551615'],
  ...['18446744073709551616', '99999999999999999999', '9'.repeat(400), '0'.repeat(400), '5.000', '40.0', '1e3'],
  ...['"', '""', '"unterminated', '"a""b"', 'a"b', '"x"y', '\0', 'a\0b', '\ufeff', '\u2028', '\r', '\ud800', '😀'],
]

/** A part of them: neighbouring cells get all. */
export function valuesFor(cell: number): readonly string[] {
  const few = VALUES.filter((_, i) => (i + cell) % 8 === 0).filter((_, i) => i % 3 === cell % 3)
  return isLong ? VALUES.filter((value, i) => (i + cell) % 3 === 0 || few.includes(value)) : few
}
