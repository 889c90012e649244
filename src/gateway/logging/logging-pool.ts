import type pg from 'pg'
import { createAlarm } from '#kernel/db/connection-alarm.ts'
import { createPool } from '#kernel/db/guarded-pool.ts'

type Options = { readonly name: string; readonly max: number; readonly maxWaiting: number }

/** Connections to the logging client. */
export const createLoggingPool = (url: string, options: Options): pg.Pool =>
  createPool({
    ...options,
    url,
    statementTimeout: 10_000,
    // The next use replaces a broken idle connection, or fails by itself.
    onError: () => {},
    alarm: createAlarm(),
  })
