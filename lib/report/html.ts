import { visible } from '../bytes/visible.ts'

const HTML = Symbol('HTML')

/** A piece of HTML that is complete, and whose texts are escaped. Its key is a symbol, which no value of a JSON document has. */
export interface Html {
  readonly [HTML]: string
}

/** What a template contains: texts and numbers are escaped, HTML is not; undefined is nothing. */
export type Content = string | number | Html | undefined | readonly Content[]

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** `text` as text of an element or as value of a quoted attribute. Characters that are not visible are replaced by escapes. */
export const escaped = (text: string): string => visible(text).replace(/[&<>"']/g, (sign) => ENTITIES[sign]!)

/** HTML that is made by this program and contains no text of an input. */
export const raw = (html: string): Html => ({ [HTML]: html })

/** The text of a whole document. */
export const documentText = (html: Html): string => html[HTML]

/** A template of HTML; see {@link Content}. */
export function html(pieces: TemplateStringsArray, ...values: readonly Content[]): Html {
  return raw(pieces.reduce((text, piece, i) => text + textOf(values[i - 1]) + piece))
}

function textOf(value: Content): string {
  if (value === undefined) return ''
  if (isList(value)) return value.map(textOf).join('')
  return typeof value === 'object' && HTML in value ? value[HTML] : escaped(String(value))
}

const isList = (value: Content): value is readonly Content[] => Array.isArray(value)
