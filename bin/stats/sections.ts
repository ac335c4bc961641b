import { basename } from 'node:path'
import type { Analysis, QueryResult } from '../../lib/cli.ts'
import { verdictSection } from '../verdict.ts'
import { accessSections } from './accesses.ts'
import { benchmarksSection } from './benchmarks.ts'
import { blasCsv, blasSection } from './blas.ts'
import { callsSection, callTable } from './calls.ts'
import { expertsSection } from './experts.ts'
import { firstTokenSection } from './first-token.ts'
import { gpuSections, kernelsCsv } from './gpu.ts'
import { hostOperatorsCsv, hostOperatorsSection } from './host-operators.ts'
import { kernelsSection, profilesCsv } from './kernels.ts'
import { memorySection } from './memory.ts'
import { modelSections } from './model.ts'
import { numaSection } from './numa.ts'
import { type Grouping, operatorsSections } from './operators.ts'
import { placementSection } from './placement.ts'
import { powerSection } from './power.ts'
import { requestsSections } from './requests.ts'
import { rooflineSection } from './roofline.ts'
import { rpcSection } from './rpc.ts'
import { callTimeSection, runSection } from './run.ts'
import type { Section } from './section.ts'
import { threadsSection } from './threads.ts'
import { weightMemorySection } from './weights.ts'
import { schedulingSection, workersSection } from './workers.ts'

/** What is shown of an Analysis. */
export interface Shown extends Grouping {
  /** A table of calls. */
  readonly calls: boolean
  /** Tables of experts: all layers, and the most used experts. */
  readonly experts: boolean
  /** For other people: without the name of the host, and names of logs without folders. */
  readonly isPublic: boolean
}

/** An Analysis as sections, in their order; those without content are left out. */
export function sectionsOf(analysis: Analysis, shown: Shown): Section[] {
  const sections: (Section | undefined)[] = [
    headOf(analysis, shown.isPublic),
    runSection(analysis, shown.isPublic),
    benchmarksSection(analysis),
    callsSection(analysis),
    firstTokenSection(analysis),
    shown.calls ? callTable(analysis) : undefined,
    ...requestsSections(analysis),
    callTimeSection(analysis),
    rpcSection(analysis),
    ...operatorsSections(analysis, shown),
    workersSection(analysis),
    schedulingSection(analysis),
    placementSection(analysis),
    weightMemorySection(analysis),
    threadsSection(analysis),
    numaSection(analysis),
    ...gpuSections(analysis, shown.top),
    hostOperatorsSection(analysis, shown.top),
    kernelsSection(analysis, shown.top),
    blasSection(analysis, shown.top),
    powerSection(analysis),
    expertsSection(analysis, shown.experts ? shown.top : undefined),
    memorySection(analysis),
    ...accessSections(analysis),
    ...(analysis.model ? modelSections(analysis.model) : []),
    rooflineSection(analysis.rooflines),
    findingsSection(analysis),
    undeterminedSection(analysis, shown),
  ]
  return sections.filter((section) => section !== undefined)
}

/** The first lines of what is printed of an Analysis, as a section. */
export const headOf = (analysis: Analysis, isPublic: boolean): Section =>
  verdictSection(analysis.verdict, inputsOf(analysis, isPublic))

const inputsOf = ({ inputs }: Analysis, isPublic: boolean) =>
  inputs.map(({ name }) => (isPublic ? basename(name) : name))

/** The table of what needs neither calls nor operators of ggml: kernels of GPUs, …; undefined where there is nothing of the kind. */
export function otherCsv(
  { gpu, blas, kernel_profiles, host_operators }: Analysis,
  top: number,
): QueryResult | undefined {
  if (gpu) return kernelsCsv(gpu, top)
  if (blas) return blasCsv(blas, top)
  if (kernel_profiles) return profilesCsv(kernel_profiles, top)
  return host_operators ? hostOperatorsCsv(host_operators, top) : undefined
}

/** Findings that are shown. */
const FINDINGS = 3

function findingsSection({ findings }: Analysis): Section | undefined {
  if (findings.length === 0) return undefined
  const shown = findings.slice(0, FINDINGS).map(({ sentence }, i) => `${i + 1}. ${sentence}`)
  const more = findings.length > FINDINGS ? [`${findings.length - FINDINGS} more`] : []
  return { title: 'findings', lines: [...shown, ...more, 'evidence and checks: ggml2perfetto why, with the same logs'] }
}

/** What the logs do not contain. */
function undeterminedSection({ undetermined }: Analysis, { by }: Grouping): Section | undefined {
  // Figures with the same reason are in one line.
  const byReason = new Map<string, string[]>()
  for (const { what, why, hint } of undetermined) {
    const reason = hint === undefined ? why : `${why} (${hint})`
    byReason.set(reason, [...(byReason.get(reason) ?? []), what])
  }
  const lines = [...byReason].map(([reason, whats]) => `${whats.join(', ')}: ${reason}`)
  if (by.includes('worker'))
    lines.push('wall time, quantiles, bytes and FLOP by worker: the workers compute each operator together')
  if (lines.length === 0) return undefined
  return { title: 'not known', lines }
}
