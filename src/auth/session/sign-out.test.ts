import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { sql, type Transaction } from 'kysely'
import pg from 'pg'
import { createSessions } from '#identity/live-sessions.ts'
import type { DB } from '#kernel/db/tables.ts'
import { PASSWORD, testService, type User } from '#test/harness.ts'
import { createSignOut } from './sign-out.ts'

const t = await testService({ config: { database: { max_connections: 20 } } })
const { db } = t.service.kernel

const get = (token: string) =>
  t.anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${token}` } })
const signOut = (token: string) =>
  t.anon.post('/api/auth/sign-out', {}, { headers: { authorization: `Bearer ${token}` } })

test('concurrent sign-outs share commits, and each session has ended when its own sign-out is answered', async () => {
  const people = await Promise.all(Array.from({ length: 20 }, (_, index) => t.signUp(`User${index}`)))
  // Some users have several sessions.
  const more = await Promise.all(
    people.slice(0, 5).map(async ({ email }) => {
      const { body } = await t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
      return body.token as string // of SignInAnswer
    }),
  )
  const tokens = [...people.map(({ token }) => token), ...more]
  const stays = await t.signUp('Stays')
  for (const token of tokens) assert.equal((await get(token)).status, 200)
  const query = mock.method(pg.Client.prototype, 'query')
  await Promise.all(
    tokens.map(async (token) => {
      assert.equal((await signOut(token)).status, 200)
      assert.equal((await get(token)).status, 401)
    }),
  )
  const deletes = query.mock.calls.filter(({ arguments: [statement] }) =>
    /delete from/.test((statement as { text?: string }).text ?? ''),
  )
  query.mock.restore()
  assert.ok(deletes.length < tokens.length, `${deletes.length} statements`)
  assert.equal((await get(stays.token)).status, 200)
})

type Locking = (locked: Transaction<DB>, ada: User) => Promise<unknown>
const LOCKED: Readonly<Record<string, Locking>> = {
  user: (locked, { id }) => locked.selectFrom('user').select('id').where('id', '=', id).forUpdate().execute(),
  session: (locked, { id }) =>
    locked.selectFrom('session').select('id').where('userId', '=', id).forUpdate().execute(),
  ticket: (locked, { id }) =>
    locked.selectFrom('verification').select('userId').where('userId', '=', id).forUpdate().execute(),
}

for (const [what, lock] of Object.entries(LOCKED))
  test(`a sign-out whose ${what} another transaction has locked waits, and blocks no other`, async () => {
    const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
    await ada.post('/api/auth/change-email', { newEmail: `new-${ada.email}` })
    let isDone = false
    const waiting = await db.transaction().execute(async (locked) => {
      await lock(locked, ada)
      const both = [signOut(ada.token), signOut(bob.token)] as const
      both[0].then(() => {
        isDone = true
      })
      assert.equal((await both[1]).status, 200)
      assert.equal((await get(bob.token)).status, 401)
      await turn()
      assert.equal(isDone, false)
      // Not awaited here: it waits for this transaction.
      return { answer: both[0] }
    })
    assert.equal((await waiting.answer).status, 200)
    assert.equal((await get(ada.token)).status, 401)
    const { rows } = await sql`select from service.verification where user_id = ${ada.id}`.execute(db)
    assert.deepEqual(rows, [], 'its tickets are gone with it')
  })

test('of two sign-outs of one session one ends it, and the other gets 401', async () => {
  const ada = await t.signUp('Ada')
  const statuses = (await Promise.all([signOut(ada.token), signOut(ada.token)])).map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [200, 401])
})

test('of two sign-outs of one session that share a commit one ends it too, and the trail has one row', async () => {
  const { kernel } = t.service
  const sessions = createSessions(kernel)
  const callerOf = async ({ token }: User) => {
    const live = await sessions.find(token, '192.0.2.1')
    return { ...(live ?? assert.fail()), token }
  }
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const callers = [await callerOf(bob), await callerOf(ada), await callerOf(ada)]
  const end = createSignOut(kernel)
  // The first one begins a statement, and the others share the next.
  const ended = await Promise.allSettled(callers.map((caller) => end(kernel, caller)))
  assert.deepEqual(
    ended.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
  )
  const told = db.selectFrom('auditEvent').select('id').where('action', '=', 'user.signed_out')
  assert.equal((await told.where('targetId', '=', ada.id).execute()).length, 1)
})
