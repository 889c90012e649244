import assert from 'node:assert/strict'
import { withClient } from '#test/database.ts'
import { answerTo } from './answers.ts'
import type { Load, Request } from './load/load.ts'
import type { Service } from './service.ts'

type Size = {
  readonly count: number
  readonly connections: number
  readonly once?: boolean
  /** Last extended two days ago, so that the first use extends them. */
  readonly areOld?: boolean
}

/** Tokens have 43 characters. */
const PREFIX = 'bench-token'.padEnd(43 - 9, '-')
const tokenOf = (number: number): string => `${PREFIX}${String(number).padStart(9, '0')}`
const headersOf = (number: number) => ({ authorization: `Bearer ${tokenOf(number)}` })

/** The sessions are spread over so many users. */
const USERS = 1_000

/** Requests with a session each, which is written into the control database. No session is in two loads. */
export async function sessionsOf({ url, controlUrl }: Service) {
  await withClient(controlUrl, (db) => db.query(ADD_USERS, [USERS]))
  let added = 0
  const add = async (count: number, areOld = false): Promise<number> => {
    const from = added
    added += count
    await withClient(controlUrl, async (db) => {
      await db.query(ADD_SESSIONS, [PREFIX, from, count, USERS, areOld])
      // As autovacuum does within a minute: otherwise statements keep plans from when the table was small.
      await db.query('analyze service.session')
    })
    return from
  }
  const single = { url, requests: [], connections: 1 }
  return {
    async load(request: Request, { count, areOld = false, ...more }: Size): Promise<Load> {
      const from = await add(count, areOld)
      const requests = Array.from({ length: count }, (_, index) => ({
        ...request,
        headers: headersOf(from + index),
      }))
      return { url, requests, ...more }
    },
    /** Names that change with each request, for users whose sessions these are. */
    async loadOfUpdates(connections: number): Promise<Load> {
      const from = await add(USERS)
      const requests = Array.from({ length: 4 * USERS }, (_, index) => ({
        method: 'POST',
        path: '/api/auth/update-user',
        headers: { ...headersOf(from + (index % USERS)), 'content-type': 'application/json' },
        body: JSON.stringify({ name: `name ${index}` }),
      }))
      return { url, requests, connections }
    },
    /** A session is that of its user. */
    async check(): Promise<void> {
      const number = await add(1)
      const found = await answerTo(single, { path: '/api/auth/get-session', headers: headersOf(number) })
      assert.equal((found as { user: { email: string } }).user.email, `bench${number % USERS}@example.com`)
    },
    /** A session that signs out is gone as soon as that is answered. */
    async checkSignOut(): Promise<void> {
      const headers = headersOf(await add(1))
      const path = '/api/auth/sign-out'
      assert.deepEqual(await answerTo(single, { method: 'POST', path, headers }), { success: true })
      assert.equal((await fetch(`${url}/api/auth/get-session`, { headers })).status, 401)
    },
  }
}

const ADD_USERS = `
insert into service."user" (id, name, email, created_at, updated_at)
select gen_random_uuid(), 'bench' || i, 'bench' || i || '@example.com', now(), now() from generate_series(0, $1::int - 1) i`

const ADD_SESSIONS = `
insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
select gen_random_uuid(), sha256(convert_to($1 || lpad(i::text, 9, '0'), 'utf8')), u.id, now() + interval '1 day', begun.at, begun.at, true
from (select now() - case when $5 then interval '2 days' else '0' end as at) begun,
  generate_series($2::int, $2::int + $3::int - 1) i join service."user" u on u.email = 'bench' || (i % $4::int) || '@example.com'`
