/** A row of the table operator, of one call of a real log, without what depends on the run. */
export type TemplateRow = Readonly<Record<string, unknown>> & {
  readonly node: number
  readonly worker: number
  readonly role: string | null
  readonly dur_ns: number
}

export interface Template {
  readonly prefill: readonly TemplateRow[] & { readonly tokens: number }
  readonly decode: readonly TemplateRow[]
}

export interface FleetOptions {
  readonly seed?: number
  readonly runs?: number
  readonly hosts?: number
  readonly builds?: number
  readonly setups?: number
  readonly regressions?: number
  readonly outliers?: number
  readonly slowHosts?: number
  readonly decodeCalls?: number
  readonly withOperators?: boolean
}

export interface Fleet {
  /** `outliers` is complete after the last run. */
  readonly truth: {
    readonly regressions: readonly {
      readonly model: string
      readonly phase: string
      readonly role: string
      readonly build: string
    }[]
    readonly slowHosts: readonly string[]
    readonly outliers: readonly string[]
    readonly builds: readonly string[]
  }
  runs(): Generator<{
    readonly day: string
    readonly traceId: string
    readonly tables: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>
  }>
}

export function fleet(template: Template, options?: FleetOptions): Fleet
