import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Driver } from '#databases/drivers/driver.ts'
import { openSupabase } from '#databases/drivers/supabase/open.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { Failure } from '#kernel/errors.ts'
import { createLog } from '#kernel/log.ts'

/** A driver for fake backends that do not behave like PostgREST. */

export const BACKEND_KEY = 'sb_secret_0123456789'
export const urlOf = (port: number): string => `http://:${BACKEND_KEY}@127.0.0.1:${port}`

/** The OpenAPI document that each fake backend serves. */
export const DOCUMENT = {
  info: { version: '13.0.5' },
  definitions: {
    books: { required: ['id'], properties: { id: { format: 'bigint' }, title: { format: 'text' } } },
  },
  paths: { '/books': { get: {}, post: {} } },
}

const opened: Driver[] = []
after(() => Promise.all(opened.map((driver) => driver.close())))

export function openOn(url: string, more: object = {}): Driver {
  const driver = openSupabase(
    { config: defaultConfig(), log: createLog({ level: 'silent', format: 'json' }) },
    {
      name: 'shop',
      driver: 'supabase',
      url,
      readOnly: false,
      max_connections: 4,
      sql_connections: 4,
      max_waiting: 1_000,
      connect_timeout: 5_000,
      statement_timeout: 10_000,
      idle_timeout: 5_000,
      ...more,
    },
  )
  opened.push(driver)
  return driver
}

/** Asserts that neither the key nor the address is in the response or the log. */
export function silent(error: unknown): void {
  assert.ok(error instanceof Failure, String(error))
  const seen = JSON.stringify([error.message, error.hint, error.details, error.headers])
  assert.doesNotMatch(seen, /sb_secret|127\.0\.0\.1|Bearer/)
  assert.doesNotMatch(
    String(error.cause instanceof Error ? error.cause.stack : error.cause),
    /sb_secret|Bearer/,
  )
}
