/**
 * Characters that show nothing, or change how other characters are shown: control characters, those that change the direction of text, blanks and joiners without
 * width, separators of lines, tags, variation selectors, fillers, halves of a pair, and what is no character. With them, a text can look like another one, contain
 * what nobody sees, or control a terminal. Tabs and line feeds are none of them, nor is what chooses the form of the pictograph before it (`☀️`).
 */
const INVISIBLE =
  /(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\ufff9-\ufffb](?<!\p{Extended_Pictographic}[\ufe0e\ufe0f])/gu

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0')

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  if (code <= 0xff) return `\\x${hex(code, 2)}`
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\u{${hex(code, 1)}}`
}

/** A text as people may see it: characters that are not visible are replaced by escapes, `\x1b`, `\u202e` or `\u{e0041}`. All else is unchanged. */
export const visible = (text: string): string => text.replace(INVISIBLE, escapeOf)

/** The same document of JSON, in which these characters are escapes of JSON: its values are unchanged. */
export const visibleJson = (json: string): string =>
  json.replace(INVISIBLE, (character) => character.replace(/[\s\S]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`))

/** Does the text contain no such character? */
export const isVisible = (text: string): boolean => text.search(INVISIBLE) < 0
