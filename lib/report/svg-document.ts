import { escaped } from './html.ts'

/**
 * The part of the DOM that the charting library calls to make an SVG, so that it draws without a browser. The result is text: an element's
 * `toString`. Labels of parts are left out: the whole drawing has one.
 */

type Child = SvgElement | SvgText

const HTML = 'http://www.w3.org/1999/xhtml'
/** A coordinate; two digits after the point are a hundredth of a pixel. */
const NUMBER = /(?<!\d)-?\d+\.\d{3,}(e-?\d+)?/g
const TEXT_ATTRIBUTES: ReadonlySet<string> = new Set(['aria-label', 'fill', 'class'])

class SvgText {
  parentNode: SvgElement | null = null

  constructor(private readonly text: string) {}

  toString(): string {
    return escaped(this.text)
  }
}

class SvgElement {
  parentNode: SvgElement | null = null
  childNodes: Child[] = []
  private readonly attributes = new Map<string, string>()
  readonly style = {
    setProperty: (key: string, value: string) =>
      this.setAttribute('style', `${this.getAttribute('style') ?? ''}${key}:${value};`),
    removeProperty: () => undefined,
  }

  constructor(
    readonly ownerDocument: SvgDocument,
    readonly namespaceURI: string,
    readonly tagName: string,
  ) {}

  setAttribute(name: string, value: unknown): void {
    this.attributes.set(name, String(value))
  }

  setAttributeNS(_space: string, name: string, value: unknown): void {
    this.setAttribute(name, value)
  }

  getAttribute(name: string): string | null {
    return this.attributes.get(name) ?? null
  }

  hasAttribute(name: string): boolean {
    return this.attributes.has(name)
  }

  removeAttribute(name: string): void {
    this.attributes.delete(name)
  }

  insertBefore(child: Child, before: Child | null | undefined): Child {
    child.parentNode?.removeChild(child)
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length
    this.childNodes.splice(at, 0, child)
    child.parentNode = this
    return child
  }

  appendChild(child: Child): Child {
    return this.insertBefore(child, undefined)
  }

  append(...children: readonly (Child | string)[]): void {
    for (const child of children)
      this.appendChild(typeof child === 'string' ? this.ownerDocument.createTextNode(child) : child)
  }

  removeChild(child: Child): Child {
    this.childNodes.splice(this.childNodes.indexOf(child), 1)
    child.parentNode = null
    return child
  }

  get firstChild(): Child | null {
    return this.childNodes[0] ?? null
  }

  get lastChild(): Child | null {
    return this.childNodes.at(-1) ?? null
  }

  set textContent(text: unknown) {
    this.childNodes = text === null || text === '' ? [] : [this.ownerDocument.createTextNode(String(text))]
  }

  toString(): string {
    if (this.tagName === 'style') return '' // the page has the styles
    const isRoot = this.parentNode === null
    const attributes = [...this.attributes].map(([name, value]) => {
      if (name.startsWith('aria-') && !isRoot) return ''
      return ` ${name}="${escaped(TEXT_ATTRIBUTES.has(name) ? value : value.replace(NUMBER, shortened))}"`
    })
    return `<${this.tagName}${attributes.join('')}>${this.childNodes.join('')}</${this.tagName}>`
  }
}

const shortened = (number: string) => String(Number(Number(number).toFixed(2)))

/** A document in which elements can be made. */
class SvgDocument {
  readonly defaultView = {}
  readonly documentElement = { namespaceURI: HTML, ownerDocument: this as SvgDocument }

  createElementNS(space: string, name: string): SvgElement {
    return new SvgElement(this, space, name)
  }

  createElement(name: string): SvgElement {
    return this.createElementNS(HTML, name)
  }

  createTextNode(text: string): SvgText {
    return new SvgText(text)
  }
}

/** A document for the charting library; only what it calls is there. */
export const svgDocument = (): Document => new SvgDocument() as unknown as Document
