import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { writeDataset } from '../fleet/datasets.ts'
import { CPUS, hasTaskset } from '../machine.ts'
import { at, CLI, useFolder } from './helpers.ts'

/** DuckDB has a thread for each CPU, and memory for each thread. */
const ON_TWO = hasTaskset ? ['taskset', '-c', CPUS.slice(0, 2).join()] : []

useFolder()

test('ask prints large results in little memory', async () => {
  await writeDataset(at('dataset'), { trace: [{ trace_id: '00', log: 'a', workers: 2, calls: 3, exporter: '0' }] })
  const sql = "select i, 'row ' || i as name, i * 1.5 as value from range(2000000) as r (i)"
  for (const format of ['csv', 'json']) {
    const [program, ...args] = [...ON_TWO, process.execPath, CLI, 'ask', at('dataset'), sql, '--format', format]
    const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    let lines = 0
    let peakKiB = 0
    for await (const piece of child.stdout as AsyncIterable<Buffer>) {
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++
      const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      if (kib !== undefined) peakKiB = Number(kib) // a process that has ended has none
    }
    expect(await ended).toEqual([0, null])
    expect(lines).toBe(2_000_000 + (format === 'csv' ? 1 : 0))
    expect(peakKiB).toBeLessThan(400 * 1024)
    expect(peakKiB).toBeGreaterThan(10 * 1024)
  }
})
