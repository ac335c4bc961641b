import { type Drawing, toDot, withTitles } from '../dag/drawing.ts'

/** Draws a graph as SVG. Its layout, by Graphviz, takes about 9 s for 3 000 nodes, and blocks. The library is loaded by the first call. */
export async function drawSvg(drawing: Drawing): Promise<string> {
  const { Graphviz } = await import('@hpcc-js/wasm-graphviz')
  const graphviz = await Graphviz.load()
  return withTitles(graphviz.dot(toDot(drawing), 'svg'), drawing)
}
