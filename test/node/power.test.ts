import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { inputOf, type RecordResult, record } from '../../lib/node.ts'

/** Meters of the kernel during a program, of a made sysfs and of this machine. */

const folder = mkdtempSync(join(tmpdir(), 'power-'))
afterAll(() => rmSync(folder, { recursive: true }))

function sysfs(name: string, files: Readonly<Record<string, string | number>>): string {
  const root = join(folder, name)
  mkdirSync(root)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    if (content === '') mkdirSync(join(root, path))
    else writeFileSync(join(root, path), `${content}\n`)
  }
  return root
}

const run = async (root: string | undefined, script: string): Promise<RecordResult & { problems: string[] }> => {
  const problems: string[] = []
  const result = await record({
    command: ['sh', '-c', script],
    output: join(folder, `${Math.random()}.ggtrace`),
    env: process.env,
    power: true,
    sysfs: root,
    onPowerProblem: (problem) => problems.push(problem),
    stdio: 'ignore',
  })
  return { ...result, problems }
}

const RAPL = 'class/powercap/intel-rapl:0'
const GPU = 'class/hwmon/hwmon3'

test('RAPL, clocks, throttling and a GPU are read while a program runs', async () => {
  const root = sysfs('all', {
    [`${RAPL}/name`]: 'package-0',
    [`${RAPL}/energy_uj`]: 261_000_000, // as many digits as it gets
    [`${RAPL}/max_energy_range_uj`]: 262_143_328_850,
    [`${RAPL}/constraint_0_power_limit_uw`]: 65_000_000,
    [`${RAPL}:0/name`]: 'core',
    [`${RAPL}:0/energy_uj`]: 1_000_000,
    [`${RAPL}:1/name`]: 'dram',
    [`${RAPL}:1/energy_uj`]: '', // a folder: it cannot be read
    'devices/system/cpu/cpufreq/policy0/scaling_cur_freq': 2_400_000,
    'devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq': 4_000_000,
    'devices/system/cpu/cpufreq/policy10/scaling_cur_freq': 3_400_000,
    'devices/system/cpu/cpu0/thermal_throttle/package_throttle_count': 3,
    'class/hwmon/hwmon1/temp1_input': 40_000,
    [`${GPU}/name`]: 'amdgpu',
    [`${GPU}/power1_average`]: 35_000_000,
    [`${GPU}/freq1_input`]: 1_800_000_000,
    [`${GPU}/temp1_input`]: 61_000,
  })
  // 10 J: the number is overwritten in place.
  const file = `${root}/${RAPL}/energy_uj`
  const { power, problems } = await run(root, `sleep 0.15; printf 271000000 1<>'${file}'; sleep 0.3`)
  expect(problems).toEqual([])
  expect(power).toMatchObject({ problem: undefined, meters: 11, hasPower: true })
  expect(power!.missing).toEqual([expect.stringMatching(/^DRAM of package-0: .*energy_uj: contains no number$/)])
  const { power: found } = await analyze(inputOf(power!.path!))
  const [cpu, clock, gpu] = ['package-0', 'CPU', 'amdgpu (hwmon3)'].map(
    (name) => found!.devices.find(({ device }) => device === name)!,
  )
  expect(cpu!.meters).toEqual(['energy_uj'])
  expect(cpu!.power_limit_w).toBeCloseTo(65, 6)
  expect(cpu!.energy.at(-1)!.energy_j).toBeCloseTo(10, 6)
  expect([clock!.clock_hz!.mean, clock!.max_clock_hz]).toEqual([2.9e9, 4e9])
  expect(gpu!.power_w!.mean).toBeCloseTo(35, 6)
  expect([gpu!.clock_hz!.mean, gpu!.temperature_c!.max]).toEqual([1.8e9, 61])
  expect(power!.readings).toBeGreaterThanOrEqual(4)
})

const rootTest = process.getuid?.() === 0 ? test : test.skip
rootTest('under sudo, the log belongs to the user who called it (needs root)', async () => {
  const caller = { SUDO_UID: '65534', SUDO_GID: '65533' }
  Object.assign(process.env, caller)
  const root = sysfs('sudo', { [`${GPU}/name`]: 'amdgpu', [`${GPU}/power1_average`]: 35_000_000 })
  const { power } = await run(root, 'true').finally(() => {
    for (const name of Object.keys(caller)) delete process.env[name]
  })
  const { uid, gid } = statSync(power!.path!)
  expect([uid, gid]).toEqual([65534, 65533])
})

test('the package of a card is a part of it (xe)', async () => {
  const root = sysfs('xe', {
    [`${GPU}/name`]: 'xe',
    [`${GPU}/energy1_input`]: 5_000_000,
    [`${GPU}/energy1_label`]: 'card',
    [`${GPU}/energy2_input`]: 4_000_000,
    [`${GPU}/energy2_label`]: 'pkg',
  })
  const { power } = await run(root, 'sleep 0.25')
  const { power: found } = await analyze(inputOf(power!.path!))
  expect(found!.devices.map(({ meters }) => meters)).toEqual([['energy1_input (card)']])
})

test('a machine without meters: the program runs, with a clear reason', async () => {
  const { power, problems, exitCode } = await run(sysfs('none', { 'class/hwmon/hwmon0/name': 'acpitz' }), 'exit 3')
  expect(exitCode).toBe(3)
  const none = join(folder, 'none')
  const reason =
    `no RAPL in ${none}/class/powercap: the kernel or a virtual machine has none; no clocks of CPUs in ` +
    `${none}/devices/system/cpu/cpufreq: there is no cpufreq driver; no sensors of power in ${none}/class/hwmon`
  expect(power).toMatchObject({ path: undefined, problem: reason })
  expect(problems).toEqual([reason])
})

test('this machine has meters, or a reason', async () => {
  const { power } = await run(undefined, 'exit 0')
  expect(power!.path === undefined).toBe(power!.problem !== undefined)
  if (power!.path === undefined) expect(power!.problem).toMatch(/no RAPL in |only root may read it/)
  else expect((await analyze(inputOf(power!.path))).inputs[0]).toMatchObject({ format: 'power', issues: {} })
})
