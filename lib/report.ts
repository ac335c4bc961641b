/** Reports: an entry of its own, as it contains the library that draws. */
export { type ReportOptions, reportHtml } from './report/report.ts'
