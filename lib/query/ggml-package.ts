/// <reference path="./sql/texts.d.ts" />
import calls from './sql/ggml/calls.sql'
import experts from './sql/ggml/experts.sql'
import interference from './sql/ggml/interference.sql'
import operators from './sql/ggml/operators.sql'
import requests from './sql/ggml/requests.sql'
import sums from './sql/ggml/sums.sql'
import waits from './sql/ggml/waits.sql'
import workers from './sql/ggml/workers.sql'
import summary from './sql/ggml.textproto'
import type { SqlPackage } from './trace-processor.ts'

/** Views of the traces that this library makes: `INCLUDE PERFETTO MODULE ggml.operators`. docs/reference/sql.md describes them. */
export const GGML_PACKAGE: SqlPackage = {
  name: 'ggml',
  modules: { calls, operators, workers, waits, interference, experts, requests, sums },
}

/**
 * Figures of a run as a trace summary: a `TraceSummarySpec` of Perfetto in textproto, which needs {@link GGML_PACKAGE}. docs/reference/sql.md lists
 * its metrics.
 */
export const GGML_SUMMARY: string = summary

/** The whole package as one text, for where modules cannot be registered: the query page of the Perfetto UI. It can be run again. */
export const GGML_SQL: string = Object.values(GGML_PACKAGE.modules)
  .map((text) =>
    text.replace(/^INCLUDE PERFETTO MODULE .*\n\n?/gm, '').replace(/^CREATE PERFETTO/gm, 'CREATE OR REPLACE PERFETTO'),
  )
  .join('\n')
