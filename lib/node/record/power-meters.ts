import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { MeterKind, MeterUnit } from '../../model/power-events.ts'

/** A meter of the kernel, as the log describes it (docs/reference/power-logs.md). */
export interface SysMeter {
  readonly device: string
  readonly name: string
  readonly what: MeterKind
  readonly unit: MeterUnit
  readonly factor?: number
  readonly wraps_at?: number
  readonly is_part?: boolean
  readonly is_count?: boolean
}

/** A meter, and how to read it: as text, `''` where it cannot be read. */
export interface OpenMeter extends SysMeter {
  read(): string
}

/** The meters that this user can read, and why others cannot be read. */
export interface FoundMeters {
  readonly meters: readonly OpenMeter[]
  /** A line for each meter that exists. */
  readonly notRead: readonly string[]
  /** A line for each kind of meters that the kernel does not have. */
  readonly absent: readonly string[]
  close(): void
}

const MICRO = 1e-6
/** Readings of one file at most. */
const buffer = Buffer.alloc(64)

/** Finds the meters below `sysfs` (`/sys`): energy and limits of RAPL, clocks of CPUs, sensors of power. */
export function findMeters(sysfs: string): FoundMeters {
  const finder = new Finder(sysfs)
  finder.rapl()
  finder.clocks()
  finder.throttling()
  finder.sensors()
  return finder
}

class Finder implements FoundMeters {
  readonly meters: OpenMeter[] = []
  readonly notRead: string[] = []
  readonly absent: string[] = []
  private readonly files: number[] = []

  constructor(private readonly sysfs: string) {}

  close(): void {
    for (const file of this.files.splice(0)) closeSync(file)
  }

  /** Packages, their parts and their memory, by their counters of energy (Linux: power/powercap). */
  rapl(): void {
    const folder = 'class/powercap'
    const all = this.entries(folder).filter((name) => /^intel-rapl:\d+(?::\d+)?$/.test(name))
    if (all.length === 0)
      this.absent.push(`no RAPL in ${join(this.sysfs, folder)}: the kernel or a virtual machine has none`)
    const names = new Map(all.map((zone) => [zone, this.text(`${folder}/${zone}/name`) ?? zone]))
    for (const zone of all) {
      const name = names.get(zone)!
      const text = names.get(zone.replace(/(:\d+):\d+$/, '$1')) ?? name
      // Memory is no part of its package; psys contains the package, and is not added to it.
      const device = name === 'dram' ? `DRAM of ${text}` : name === 'psys' ? 'psys' : text
      const isPart = name !== 'dram' && (text !== name || name === 'psys')
      const wraps = Number(this.text(`${folder}/${zone}/max_energy_range_uj`))
      const counter = {
        device,
        name: text === name ? 'energy_uj' : `${name} energy_uj`,
        what: 'energy',
        unit: 'J',
        factor: MICRO,
      } as const
      this.file(`${folder}/${zone}/energy_uj`, {
        ...counter,
        ...(wraps > 0 && { wraps_at: wraps }),
        ...(isPart && { is_part: true }),
      })
      const limit = {
        device,
        name: 'constraint_0_power_limit_uw',
        what: 'power-limit',
        unit: 'W',
        factor: MICRO,
      } as const
      if (text === name && this.text(`${folder}/${zone}/enabled`) !== '0')
        this.file(`${folder}/${zone}/constraint_0_power_limit_uw`, limit, true)
    }
  }

  /** The mean, the lowest and the highest clock of all CPUs (Linux: cpufreq). */
  clocks(): void {
    const folder = 'devices/system/cpu/cpufreq'
    const policies = this.entries(folder).filter((name) => /^policy\d+$/.test(name))
    const files = policies.flatMap((policy) => this.open(`${folder}/${policy}/scaling_cur_freq`) ?? [])
    if (files.length === 0) {
      if (policies.length === 0)
        this.absent.push(`no clocks of CPUs in ${join(this.sysfs, folder)}: there is no cpufreq driver`)
      return
    }
    let kHz: number[] = []
    const clock = (name: string, what: MeterKind, read: () => number): OpenMeter => ({
      ...({ device: 'CPU', name: `scaling_cur_freq, ${name}`, what, unit: 'Hz', factor: 1000 } as const),
      read: () => (kHz.length > 0 ? String(Math.round(read())) : ''),
    })
    const mean = () => {
      kHz = files.map((file) => Number(textOf(file))).filter((value) => value > 0)
      return kHz.reduce((sum, value) => sum + value, 0) / kHz.length
    }
    const first = clock('mean', 'clock', mean)
    this.meters.push(
      { ...first, read: () => (Number.isFinite(mean()) ? first.read() : '') },
      clock('lowest', 'other', () => Math.min(...kHz)),
      clock('highest', 'other', () => Math.max(...kHz)),
    )
    const max = Math.max(0, ...policies.map((policy) => Number(this.text(`${folder}/${policy}/cpuinfo_max_freq`)) || 0))
    const highest = { device: 'CPU', name: 'cpuinfo_max_freq', what: 'max-clock', unit: 'Hz', factor: 1000 } as const
    if (max > 0) this.meters.push({ ...highest, read: () => String(max) })
  }

  /** Counts of times in which a package was too hot, one file per package (Linux on x86). */
  throttling(): void {
    const packages = new Set<string>()
    for (const cpu of this.entries('devices/system/cpu').filter((name) => /^cpu\d+$/.test(name))) {
      const at = `devices/system/cpu/${cpu}`
      const number = this.text(`${at}/topology/physical_package_id`) ?? '0'
      const path = `${at}/thermal_throttle/package_throttle_count`
      if (packages.has(number) || this.text(path) === undefined) continue
      packages.add(number)
      const count = {
        device: `package-${number}`,
        name: 'package_throttle_count',
        what: 'thermal-capped',
        unit: 'share',
      } as const
      this.file(path, { ...count, is_count: true }, true)
    }
  }

  /** Sensors with power or energy, such as amdgpu's, and their clocks, limits and temperatures (Linux: hwmon). */
  sensors(): void {
    const folder = 'class/hwmon'
    let found = 0
    for (const sensor of this.entries(folder)) {
      const files = this.entries(`${folder}/${sensor}`)
      const powers = files.filter((name) => /^(?:power\d+_(?:average|input)|energy\d+_input)$/.test(name))
      if (powers.length === 0) continue
      found++
      const chip = this.text(`${folder}/${sensor}/name`) ?? sensor
      const device = `${chip} (${sensor})`
      // A meter of the whole machine contains the others.
      const isWhole = /^(?:power_meter|acpi_power_meter|amd_energy)$/.test(chip)
      const labels = new Map(powers.map((name) => [name, this.label(`${folder}/${sensor}`, name)]))
      // Intel's xe has the energy of the card, and that of the package, which is a part of it.
      const hasCard = [...labels.values()].includes('card')
      for (const name of powers) {
        if (/_input$/.test(name) && files.includes(name.replace('input', 'average'))) continue
        const isEnergy = name.startsWith('energy')
        const label = labels.get(name)
        const isPart = isWhole || (hasCard && label !== 'card')
        const named = label === undefined ? name : `${name} (${label})`
        const meter = { what: isEnergy ? 'energy' : 'power', unit: isEnergy ? 'J' : 'W', factor: MICRO } as const
        this.file(`${folder}/${sensor}/${name}`, { device, name: named, ...meter, ...(isPart && { is_part: true }) })
      }
      const further = [
        ['power1_cap', { what: 'power-limit', unit: 'W', factor: MICRO }],
        ['freq1_input', { what: 'clock', unit: 'Hz' }],
        ['temp1_input', { what: 'temperature', unit: '°C', factor: 1e-3 }],
      ] as const
      for (const [name, meter] of further)
        if (files.includes(name)) this.file(`${folder}/${sensor}/${name}`, { device, name, ...meter }, true)
    }
    if (found === 0) this.absent.push(`no sensors of power in ${join(this.sysfs, folder)}`)
  }

  private label(sensor: string, name: string): string | undefined {
    // bounded: the name of a file
    return this.text(`${sensor}/${name.replace(/_\w+$/, '_label')}`)
  }

  /** Adds the meter of a file. `isOptional`: that it cannot be read is not worth a line. */
  private file(path: string, meter: SysMeter, isOptional = false): void {
    const file = this.open(path, isOptional ? undefined : meter)
    if (file !== undefined) this.meters.push({ ...meter, read: () => textOf(file) })
  }

  private open(path: string, meter?: SysMeter): number | undefined {
    const whole = join(this.sysfs, path)
    try {
      const file = openSync(whole, 'r')
      this.files.push(file)
      if (textOf(file) !== '') return file
      if (meter) this.notRead.push(`${meter.device}: ${whole}: contains no number`)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (meter && code !== 'ENOENT') this.notRead.push(`${meter.device}: ${whole}: ${reasonOf(code)}`)
    }
    return undefined
  }

  private entries(path: string): string[] {
    try {
      return readdirSync(join(this.sysfs, path)).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    } catch {
      return []
    }
  }

  private text(path: string): string | undefined {
    try {
      return readFileSync(join(this.sysfs, path), 'utf8').trim()
    } catch {
      return undefined
    }
  }
}

function reasonOf(code: string | undefined): string {
  return code === 'EACCES' || code === 'EPERM' ? 'only root may read it' : `cannot be read (${code})`
}

/** The number in an open file, from its start; `''` where there is none. */
function textOf(file: number): string {
  try {
    const text = buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0)).trim()
    return /^-?\d+$/.test(text) ? text : ''
  } catch {
    return ''
  }
}
