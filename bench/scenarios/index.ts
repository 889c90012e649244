import type { Scenario } from '../scenario.ts'
import { bulkInsert } from './bulk-insert.ts'
import { getSessionCached } from './get-session-cached.ts'
import { getSessionInFlood } from './get-session-in-flood.ts'
import { getSessionUncached } from './get-session-uncached.ts'
import { getSessionWithJwt } from './get-session-with-jwt.ts'
import { liveRowsOfCohort, liveRowsOfUsers } from './live-rows.ts'
import { liveRowsIdle } from './live-rows-idle.ts'
import { liveRowsPast, liveRowsThrough } from './live-rows-latency.ts'
import { liveRowsBulk, liveRowsInsert } from './live-rows-writers.ts'
import { memory } from './memory.ts'
import { memoryOfJwts } from './memory-of-jwts.ts'
import { pipeline } from './pipeline.ts'
import { rowByJwt } from './row-by-jwt.ts'
import { rowBySession } from './row-by-session.ts'
import { filtered, rows100, rows1000 } from './rows.ts'
import { rowByKeyGet, rowByKeyPost } from './rows-by-key.ts'
import { signIn, signUp } from './sign-in.ts'
import { signOuts8, signOuts64 } from './sign-outs.ts'
import { startToReady } from './start-to-ready.ts'
import { webhooks } from './webhooks.ts'
import { insertOfRow, transactionOfThree, updateByKey } from './writes.ts'

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'get-session-cached': getSessionCached,
  'get-session-uncached': getSessionUncached,
  'get-session-in-flood': getSessionInFlood,
  'get-session-with-jwt': getSessionWithJwt,
  'sign-in': signIn,
  'sign-up': signUp,
  'sign-outs-8': signOuts8,
  'sign-outs-64': signOuts64,
  'row-by-key-get': rowByKeyGet,
  'row-by-key-post': rowByKeyPost,
  'row-by-session': rowBySession,
  'row-by-jwt': rowByJwt,
  'rows-100': rows100,
  'rows-1000': rows1000,
  'filtered-page': filtered,
  'insert-of-row': insertOfRow,
  'update-by-key': updateByKey,
  'transaction-of-three': transactionOfThree,
  'bulk-insert': bulkInsert,
  pipeline,
  webhooks,
  'live-rows-cohort': liveRowsOfCohort,
  'live-rows-users': liveRowsOfUsers,
  'live-rows-through': liveRowsThrough,
  'live-rows-past': liveRowsPast,
  'live-rows-insert': liveRowsInsert,
  'live-rows-bulk': liveRowsBulk,
  'live-rows-idle': liveRowsIdle,
  'start-to-ready': startToReady,
  memory,
  'memory-of-jwts': memoryOfJwts,
}

/** Ours and its limit, for a look in between. */
export const QUICK = ['get-session-cached', 'row-by-key-get', 'rows-100', 'sign-in']
