import assert from 'node:assert/strict'
import type { Driver } from '#databases/drivers/driver.ts'
import { createScyllaDriver, type ScyllaOptions } from '#databases/drivers/scylla/driver.ts'
import { readScyllaUrl } from '#kernel/config/scylla-url.ts'

const SETTINGS = {
  maxConnections: 4,
  sqlConnections: 4,
  maxWaiting: 1_000,
  connectTimeout: 10_000,
  statementTimeout: 30_000,
  idleTimeout: 60_000,
  applicationName: 'test',
  maxRows: 50,
  inProduct: 1_000,
  answerBytes: 33_554_432,
}

export function driverOn(url: string, more: Partial<ScyllaOptions> = {}): Driver {
  const address = readScyllaUrl(url)
  assert.ok(address)
  return createScyllaDriver({ address, ...SETTINGS, ...more })
}
