/** Highest number of a CPU, plus one; those above it are not counted. */
const CPUS_MAX = 4096

/** The CPUs on which threads of a program ran. */
export class CpusUsed {
  count = 0
  private readonly cpus = new Uint8Array(CPUS_MAX)

  add(cpu: number): void {
    if (this.cpus[cpu] !== 0) return
    this.cpus[cpu] = 1
    this.count++
  }
}
