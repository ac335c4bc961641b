import { describe, expect, test } from '@jest/globals'
import { cpuList, cpusOf, cpuTitle, topologyOf } from '../../lib/model/topology.ts'

describe('lists of CPUs', () => {
  test.each([
    ['0', [0]],
    ['0-3,8', [0, 1, 2, 3, 8]],
    ['2,5-6', [2, 5, 6]],
    ['', []],
  ])('%j', (list, cpus) => {
    expect(cpusOf(list)).toEqual(cpus)
    expect(cpuList([...cpus, ...cpus].reverse())).toBe(list)
  })

  test.each(['x', '3-1', '-1', '0-99999999999'])('%j of a damaged log has few or none', (list) => {
    expect(cpusOf(list).length).toBeLessThanOrEqual(4096)
  })
})

describe('kinds of cores', () => {
  const cores = { 'topology.online': '0-7', 'topology.cores': '0,1|2,3|4|5|6|7' }
  const kinds = (facts: Record<string, string>) =>
    [...topologyOf({ ...cores, ...facts })!.values()].map(({ kind }) => kind)

  test("Intel's names", () => {
    const found = kinds({ 'topology.kinds': 'core:0-3|atom:4-5|lowpower:6-7', 'topology.capacity': '1024:0,2|600:4-7' })
    expect(found).toEqual(['P', 'P', 'P', 'P', 'E', 'E', 'LP', 'LP'])
  })

  test('capacities of the kernel (arm64)', () => {
    expect(kinds({ 'topology.capacity': '1024:0,2|446:4-7' })).toEqual(['P', 'P', 'P', 'P', 'E', 'E', 'E', 'E'])
  })

  test('highest clocks that differ much; those of preferred cores differ less', () => {
    expect(kinds({ 'topology.max_khz': '5100000:0,2|3300000:4-7' }).join('')).toBe('PPPPEEEE')
    expect(kinds({ 'topology.max_khz': '5100000:0|4900000:2,4-7' }).join('')).toBe('')
  })

  test('one kind, or none known, has no name', () => {
    expect(kinds({ 'topology.kinds': 'core:0-7' }).join('')).toBe('')
    expect(kinds({}).join('')).toBe('')
    expect(topologyOf({ 'topology.online': '0-7' })).toBeUndefined()
  })

  test('titles name the kind and the node where there are several', () => {
    const hybrid = topologyOf({ ...cores, 'topology.capacity': '1024:0,2|446:4-7', 'topology.nodes': '0:0-3|1:4-7' })
    expect([cpuTitle(5, hybrid), cpuTitle(0, hybrid)]).toEqual(['CPU 5 (E, node 1)', 'CPU 0 (P, node 0)'])
    expect(cpuTitle(5, topologyOf(cores))).toBe('CPU 5')
    expect([cpuTitle(99, hybrid), cpuTitle(5, undefined)]).toEqual(['CPU 99', 'CPU 5'])
  })
})
