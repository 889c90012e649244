import assert from 'node:assert/strict'
import { after } from 'node:test'
import type { Driver } from '#databases/drivers/driver.ts'
import { openSupabase } from '#databases/drivers/supabase/settings.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { Failure } from '#kernel/errors.ts'
import { createLog } from '#kernel/log.ts'

/** For backends of tests that are no PostgREST, or one that lies. */

export const BACKEND_KEY = 'sb_secret_0123456789'
export const urlOf = (port: number): string => `http://:${BACKEND_KEY}@127.0.0.1:${port}`

/** What each of them says of its structure. */
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
      connect_timeout: 1_000,
      statement_timeout: 400,
      idle_timeout: 5_000,
      ...more,
    },
  )
  opened.push(driver)
  return driver
}

/** Neither the key nor the address is in what a caller or the log may see. */
export function silent(error: unknown): void {
  assert.ok(error instanceof Failure, String(error))
  const seen = JSON.stringify([error.message, error.hint, error.details, error.headers])
  assert.doesNotMatch(seen, /sb_secret|127\.0\.0\.1|Bearer/)
  assert.doesNotMatch(
    String(error.cause instanceof Error ? error.cause.stack : error.cause),
    /sb_secret|Bearer/,
  )
}
