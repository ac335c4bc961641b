import { visible } from '../bytes/visible.ts'

/** A drawing of a graph, before its layout. */
export interface Drawing {
  readonly title: string
  /** What it shows, in sentences, for people who do not see it. */
  readonly description: string
  readonly legend: DrawnLegend
  readonly groups: readonly DrawnGroup[]
  readonly edges: readonly DrawnEdge[]
}

/** Nodes within a frame; without a title there is no frame. */
export interface DrawnGroup {
  readonly title?: string | undefined
  readonly nodes: readonly DrawnNode[]
}

/** A node. */
export interface DrawnNode {
  /** Unique; letters and digits. */
  readonly id: string
  readonly lines: readonly string[]
  /** A text with all that is known, shown at the pointer and read aloud. */
  readonly title: string
  /** Of Graphviz. */
  readonly shape: string
  readonly fill: string
  readonly text: string
  readonly outline: 'thin' | 'thick' | 'dashed' | 'none'
}

/** An edge. */
export interface DrawnEdge {
  readonly from: string
  readonly to: string
  readonly title: string
  readonly label?: string | undefined
  readonly isDashed?: boolean
  /** Has it no part in the order of the layout? So it is with edges back to an earlier node. */
  readonly isLoose?: boolean
  readonly color?: string | undefined
}

/** What colours, outlines and lines mean. */
export interface DrawnLegend {
  readonly title: string
  readonly cells: readonly { readonly fill: string; readonly text: string; readonly label: string }[]
  readonly notes: readonly string[]
}

const FONT = 'Helvetica,Arial,sans-serif'
const GRAY = '#595959'

/** A text in XML, and in an HTML-like label of Graphviz. */
export const xml = (text: string) => visible(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

/** A quoted text of DOT. Graphviz decodes entities of XML in it. */
const quoted = (text: string) =>
  `"${visible(text).replaceAll('&', '&amp;').replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`

/** The drawing as DOT, the language of Graphviz: a node or an edge a line. */
export function toDot({ title, legend, groups, edges }: Drawing): string {
  const font = `fontname=${quoted(FONT)}`
  return [
    `digraph ${quoted(title)} {`,
    `  graph [${font}, fontsize=12, labelloc=t, labeljust=l, bgcolor="#ffffff", ranksep=0.3, nodesep=0.2, label=<${legendOf(title, legend)}>]`,
    `  node [${font}, fontsize=10, style=filled, color="#000000", margin="0.12,0.05", height=0.3]`,
    `  edge [${font}, fontsize=9, color="${GRAY}", arrowsize=0.6]`,
    ...groups.flatMap(({ title, nodes }, i) =>
      title === undefined
        ? nodes.map((node) => `  ${nodeLine(node)}`)
        : [
            `  subgraph cluster_${i} {`,
            `    graph [label=${quoted(title)}, style=rounded, color="${GRAY}"]`,
            ...nodes.map((node) => `    ${nodeLine(node)}`),
            '  }',
          ],
    ),
    ...edges.map((edge) => `  ${edgeLine(edge)}`),
    '}',
    '',
  ].join('\n')
}

const OUTLINES = {
  thin: '',
  thick: ', penwidth=3',
  dashed: ', style="filled,dashed"',
  none: ', penwidth=0',
} as const satisfies Readonly<Record<DrawnNode['outline'], string>>

/** A label of lines. None is empty: Graphviz 16 fails at that. */
const labelOf = (lines: readonly string[]) =>
  quoted(
    lines
      .map((line) => line.replace(/\s+/g, ' ').trim())
      .filter(Boolean)
      .join('\n'),
  )

const nodeLine = ({ id, lines, shape, fill, text, outline }: DrawnNode) =>
  `${id} [label=${labelOf(lines)}, shape=${shape}, fillcolor="${fill}", fontcolor="${text}"${OUTLINES[outline]}]`

function edgeLine({ from, to, label, isDashed, isLoose, color }: DrawnEdge): string {
  const attributes = [
    ...(label ? [`label=${quoted(label)}`] : []),
    ...(isDashed ? ['style=dashed'] : []),
    ...(isLoose ? ['constraint=false'] : []),
    ...(color === undefined ? [] : [`color="${color}"`]),
  ]
  return `${from} -> ${to}${attributes.length === 0 ? '' : ` [${attributes.join(', ')}]`}`
}

/** A table in Graphviz' HTML-like labels. */
function legendOf(title: string, { title: heading, cells, notes }: DrawnLegend): string {
  const span = Math.max(1, cells.length + 1)
  const row = (text: string) => `<TR><TD COLSPAN="${span}" ALIGN="LEFT">${text}</TD></TR>`
  const colors = cells.map(
    ({ fill, text, label }) => `<TD BGCOLOR="${fill}"><FONT COLOR="${text}">${xml(label)}</FONT></TD>`,
  )
  return [
    '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4">',
    row(`<B>${xml(title)}</B>`),
    `<TR><TD ALIGN="LEFT">${xml(heading)}</TD>${colors.join('')}</TR>`,
    ...notes.map((note) => row(`<FONT POINT-SIZE="10">${xml(note)}</FONT>`)),
    '</TABLE>',
  ].join('')
}

/**
 * What Graphviz drew of the DOT of a drawing, with a title and a description, and with the title of each node and edge, for screen
 * readers and at the pointer. `svg`: Graphviz' output.
 */
export function withTitles(svg: string, { title, description, groups, edges }: Drawing): string {
  const titles = new Map(groups.flatMap(({ nodes }) => nodes.map(({ id, title }) => [id, title])))
  const ofEdges = new Map(edges.map(({ from, to, title }) => [`${from}->${to}`, title]))
  return svg
    .replace(/<g id="([^"]*)" class="(node|edge)">\n<title>([^<]*)<\/title>/g, (whole, id, kind, dot) => {
      const text = (kind === 'node' ? titles : ofEdges).get(dot.replaceAll('&#45;', '-').replaceAll('&gt;', '>'))
      return text === undefined ? whole : `<g id="${id}" class="${kind}" role="img">\n<title>${xml(text)}</title>`
    })
    .replace(/(<g id="[^"]*" class="cluster")>\n<title>[^<]*<\/title>/g, '$1>')
    .replace(/(<g id="graph0" class="graph"[^<>]*>)\n<title>[^<]*<\/title>/, '$1')
    .replace(
      /<svg ([^<>]*)>/,
      (_, attributes) =>
        `<svg ${attributes} role="graphics-document document" aria-labelledby="dag-title" aria-describedby="dag-description">\n` +
        `<title id="dag-title">${xml(title)}</title>\n<desc id="dag-description">${xml(description)}</desc>`,
    )
}
