/** Reports: an entry of its own, as it contains the library that draws. */
export type { LayerDrawing } from './report/context.ts'
export { fleetReportHtml } from './report/fleet.ts'
export { type ReportOptions, reportHtml } from './report/report.ts'
export { layerToShow } from './report/sections/graph.ts'
