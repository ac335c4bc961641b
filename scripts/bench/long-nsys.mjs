/**
 * A large report of Nsight Systems, synthetic: layers of kernels within NVTX ranges with payloads, launches and polls of events, two
 * processes with the same correlation ids.
 */
import sqlite from 'node-sqlite3-wasm'

/** Bytes of a launch, its kernel, a poll and half a range. */
const ROUND_BYTES = 170

/** Writes the report; returns its number of rows. With `isUnordered`, the rows are not in order. */
export function makeReport(path, megabytes, isUnordered) {
  const rounds = Math.floor((megabytes * 1e6) / ROUND_BYTES)
  const db = new sqlite.Database(path)
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 4096')
  const tables = {
    CUPTI_ACTIVITY_KIND_KERNEL:
      'start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId, graphNodeId',
    CUPTI_ACTIVITY_KIND_RUNTIME: 'start, end, eventClass, globalTid, correlationId, nameId, returnValue, callchainId',
    NVTX_EVENTS: 'start, end, eventType, globalTid, textId, domainId, category, color, uint64Value, rangeId, text',
    StringIds: 'id INTEGER PRIMARY KEY, value TEXT',
    TARGET_INFO_SESSION_START_TIME: 'utcEpochNs',
  }
  for (const [table, columns] of Object.entries(tables)) db.exec(`CREATE TABLE ${table} (${columns})`)
  db.exec('INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1754324972242076786)')
  const texts = ['', 'cudaLaunchKernel_v7000', 'cudaEventQuery_v3020', 'decode', 'layer']
  for (const [id, value] of texts.entries()) db.run('INSERT INTO StringIds VALUES (?, ?)', [id, value])
  for (let id = 10; id < 300; id++)
    db.run('INSERT INTO StringIds VALUES (?, ?)', [id, `void kernel_${id}<float, 4>(T1 *, T2)`])
  const part = 1 << 16
  for (let from = 0; from < rounds; from += part) {
    // `n` counts rounds of 20 µs; for `unordered`, the rows of each part are stored in reverse order.
    const numbers = `WITH RECURSIVE number(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i < ${Math.min(part, rounds - from) - 1}),
      round AS (SELECT ${isUnordered ? `${from} + (i * 40503) % ${Math.min(part, rounds - from)}` : `${from} + i`} AS n FROM number)`
    const pid = '((1 << 48) + ((100 + n % 2) << 24))'
    db.exec(`BEGIN;
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL ${numbers} SELECT n * 20000 + 9000, n * 20000 + 25000, n % 2, 1, 7, n / 2, ${pid},
        10 + n % 290, 10 + n % 290, 40, 64, n % 97, 1, 256, 1, 1, 1024, 49152, 0, 100000, n, NULL FROM round;
      INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME ${numbers} SELECT n * 20000 + 2000, n * 20000 + 7000, 0, ${pid} + 100 + n % 2, n / 2, 1, 0, NULL FROM round;
      INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME ${numbers} SELECT n * 20000 + 8000, n * 20000 + 9000, 0, ${pid} + 100 + n % 2, 1000000000 + n / 2, 2, 600, NULL FROM round;
      INSERT INTO NVTX_EVENTS ${numbers} SELECT n * 20000, n * 20000 + 11000, 59, ${pid} + 100 + n % 2, 3 + n % 4 / 2, 0, 1, NULL, n, NULL, NULL FROM round WHERE n % 2;
      COMMIT`)
  }
  db.close()
  return rounds * 3.5
}
