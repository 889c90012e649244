import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { OWN_LOCKS } from '#test/database.ts'
import { type Answer, actor, testService } from '#test/harness.ts'
import { createPerson, type Person } from '#test/organizations.ts'
import { rowLocks } from '#test/proof-races/row-locks.ts'

const t = await testService({ config: { database: { max_connections: 20 } } })
const { db } = t.service.kernel
const locks = rowLocks(t.controlUrl, 2)
after(() => locks.close())
// So that no admin of a case is the last one.
await createPerson(t, { role: 'admin' })

type Side = { readonly admin: Person; readonly user: Person; readonly other: Person }
type Act = (side: Side) => Promise<Answer>

const post = (who: Person, name: string, body: object) => who.post(`/api/auth/admin/${name}`, body)

/** Acts that end an impersonation, or must not let it begin. */
const ENDING: Readonly<Record<string, Act>> = {
  'set-role of the admin': ({ other, admin }) => post(other, 'set-role', { userId: admin.id, role: 'user' }),
  'set-role of the user': ({ other, user }) => post(other, 'set-role', { userId: user.id, role: 'admin' }),
  'ban of the admin': ({ other, admin }) => post(other, 'ban-user', { userId: admin.id }),
  'ban of the user': ({ other, user }) => post(other, 'ban-user', { userId: user.id }),
  'removal of the admin': ({ other, admin }) => post(other, 'remove-user', { userId: admin.id }),
  'removal of the user': ({ other, user }) => post(other, 'remove-user', { userId: user.id }),
  'sign-out of the admin': ({ admin }) => admin.post('/api/auth/sign-out'),
  'revoke of the admin’s session': ({ other, admin }) =>
    post(other, 'revoke-user-session', { sessionToken: `sh_${admin.sessionId}` }),
}

const newSide = async (): Promise<Side> => ({
  admin: await createPerson(t, { role: 'admin' }),
  user: await createPerson(t),
  other: await createPerson(t, { role: 'admin' }),
})
const impersonate: Act = ({ admin, user }) => post(admin, 'impersonate-user', { userId: user.id })
/** Exchanges a code that the admin has asked for. */
async function handedOff({ admin, user }: Side): Promise<Act> {
  const { body } = await post(admin, 'impersonate-user', { userId: user.id, handoff: true })
  return () => t.anon.post('/api/auth/admin/exchange-handoff', { code: body.code })
}

const BEGINNING = Object.entries(ENDING).flatMap(([name, end]) => [
  { ...{ name, end }, title: 'an impersonation that begins', prepare: async () => impersonate },
  { ...{ name, end }, title: 'a code that is exchanged', prepare: handedOff },
])
for (const { name, end, title, prepare } of BEGINNING) {
  for (const order of ['before', 'after'] as const) {
    test(`${title} ${order} the ${name} leaves no session`, async () => {
      const side = await newSide()
      const impersonate = await prepare(side)
      const held = await Promise.all([locks.lock(side.admin.id), locks.lock(side.user.id)])
      const acts = order === 'before' ? [impersonate, end] : [end, impersonate]
      const answers: Promise<Answer>[] = []
      for (const act of acts) {
        answers.push(act(side))
        await waitingTransactions(answers.length)
      }
      await Promise.all(held.map((lock) => lock.release()))
      const all = await Promise.all(answers)
      for (const { status, text } of all) assert.ok(status < 500, text)
      const [begun] = order === 'before' ? all : all.toReversed()
      const left = await db
        .selectFrom('session')
        .select('id')
        .where('impersonatedBy', '=', side.admin.id)
        .execute()
      assert.deepEqual(left, [])
      if (begun?.status !== 200) return
      const session = actor(t.url, { authorization: `Bearer ${begun.body.session.token}` })
      assert.equal((await session.get('/api/auth/get-session')).status, 401)
    })
  }
}

/** Acts that hand an account over. */
const HANDING: Readonly<Record<string, Act>> = {
  'set-user-password': ({ admin, user }) =>
    post(admin, 'set-user-password', { userId: user.id, newPassword: 'a password of mine' }),
  'a new address': ({ admin, user }) =>
    post(admin, 'update-user', { userId: user.id, data: { email: `mine-${user.id}@example.com` } }),
}
const giveRole =
  (role: string): Act =>
  ({ other, user }) =>
    post(other, 'set-role', { userId: user.id, role })

for (const [name, handOver] of Object.entries(HANDING)) {
  for (const [change, from, to] of [
    ['demotion', 'admin', 'user'],
    ['promotion', 'user', 'admin'],
  ] as const) {
    for (const order of ['before', 'after'] as const) {
      test(`${name} ${order} the ${change} at the same moment hands over no admin`, async () => {
        const side = { ...(await newSide()), user: await createPerson(t, { role: from }) }
        const held = await locks.lock(side.user.id)
        const answers: Promise<Answer>[] = []
        for (const act of order === 'before' ? [handOver, giveRole(to)] : [giveRole(to), handOver]) {
          answers.push(act(side))
          await waitingTransactions(answers.length)
        }
        await held.release()
        const all = await Promise.all(answers)
        const [handed, changed] = order === 'before' ? all : all.toReversed()
        assert.equal(changed?.status, 200)
        const isPlain = change === 'promotion' && order === 'before'
        assert.equal(handed?.status, isPlain ? 200 : 403)
      })
    }
  }
}

/** Waits until this many transactions of the service wait for a lock. */
async function waitingTransactions(count: number): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ count: number }>`
      select count(distinct pid)::int as count from ${sql.raw(OWN_LOCKS)} where not granted`.execute(db)
    if ((rows[0]?.count ?? 0) >= count) return
    await sleep(2)
  }
}

test('of two admins who ban each other at once, one is banned and the other is not', async () => {
  for (let round = 0; round < 5; round++) {
    const [ada, bob] = [await createPerson(t, { role: 'admin' }), await createPerson(t, { role: 'admin' })]
    const answers = await Promise.all([
      post(ada, 'ban-user', { userId: bob.id }),
      post(bob, 'ban-user', { userId: ada.id }),
    ])
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 401])
    const banned = await db
      .selectFrom('user')
      .select('id')
      .where('id', 'in', [ada.id, bob.id])
      .where('banned', '=', true)
      .execute()
    assert.equal(banned.length, 1)
  }
})

test('of two admins who are the last ones and remove each other at once, one remains', async () => {
  await db.updateTable('user').set({ role: 'user' }).execute()
  const [ada, bob] = [await createPerson(t, { role: 'admin' }), await createPerson(t, { role: 'admin' })]
  const answers = await Promise.all([
    post(ada, 'set-role', { userId: ada.id, role: 'user' }),
    post(bob, 'remove-user', { userId: ada.id }),
    post(ada, 'ban-user', { userId: bob.id }),
    post(bob, 'set-role', { userId: bob.id, role: 'user' }),
  ])
  for (const { status, text } of answers) assert.ok(status < 500, text)
  const left = await db
    .selectFrom('user')
    .select('id')
    .where('role', '=', 'admin')
    .where('banned', '=', false)
    .execute()
  assert.ok(left.length >= 1)
})
