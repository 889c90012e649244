import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { testService, type User } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { addWebhook } from '#test/webhooks.ts'

const t = await testService({ config: { auth: { anonymous: { enabled: true } } } })
const { kernel } = t.service
const { db } = kernel
const rows = heldRows(t.controlUrl)
after(rows.close)
const AUTH = '/api/auth'
const DAY = 86_400_000

const prune = () => t.service.recurring.find(({ name }) => name === 'prune-anonymous-users')?.run()
const exist = async (...users: readonly User[]) => {
  const found = await db.selectFrom('user').select('id').execute()
  return users.map(({ id }) => found.some((row) => row.id === id))
}
const age = ({ id }: User, days: number) =>
  db
    .updateTable('user')
    .set({ createdAt: new Date(kernel.now().getTime() - days * DAY) })
    .where('id', '=', id)
    .execute()
const signOut = (who: User) => who.post(`${AUTH}/sign-out`)

test('anonymous users of 30 days without a session are deleted, and nobody else', async () => {
  const [old, young, used, known, upgraded] = [
    await signInAnonymously(t),
    await signInAnonymously(t),
    await signInAnonymously(t),
    await t.signUp('Ada'),
    await signInAnonymously(t),
  ]
  await ceremoniesOf(t).register(upgraded, createAuthenticator())
  for (const who of [old, used, known, upgraded]) await age(who, 31)
  await age(young, 29)
  for (const who of [old, young, known]) assert.equal((await signOut(who)).status, 200)
  await db.deleteFrom('session').where('userId', '=', upgraded.id).execute()
  await prune()
  assert.deepEqual(await exist(old, young, used, known, upgraded), [false, true, true, true, true])
  assert.equal((await used.get(`${AUTH}/get-session`)).status, 200)
  await signOut(used)
  await prune()
  assert.deepEqual(await exist(used), [false])
})

test('an expired session is none, and one that is used keeps its user for longer than 30 days', async () => {
  const [idle, used] = [await signInAnonymously(t), await signInAnonymously(t)]
  for (let day = 0; day < 32; day += 4) {
    t.advance(4 * DAY)
    assert.equal((await used.get(`${AUTH}/get-session`)).status, 200)
  }
  await prune()
  assert.deepEqual(await exist(idle, used), [false, true])
})

test('many are deleted in batches past those who stay, each with its row of the trail and its event', async () => {
  const stays = await signInAnonymously(t)
  await sql`
    insert into service."user" (id, name, email, is_anonymous, created_at, updated_at)
    select id, 'Anonymous', id || '@anonymous.invalid', true, at, at
      from (select gen_random_uuid() as id, ${new Date(kernel.now().getTime() - 31 * DAY)}::timestamptz as at
        from generate_series(1, 1300)) as made`.execute(db)
  // Every second one has a session, so no batch is deleted as a whole.
  await sql`
    insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
    select gen_random_uuid(), sha256(u.id::text::bytea), u.id, s.expires_at, s.created_at, s.updated_at, true
      from (select id, row_number() over (order by id) as n from service."user" where is_anonymous and id <> ${stays.id}) as u,
        service.session s where s.user_id = ${stays.id} and u.n % 2 = 0`.execute(db)
  await addWebhook(kernel, { url: 'https://hooks.example.com', routeKey: 'auth.*', clientName: null })
  const left = async () =>
    (await db.selectFrom('user').select('id').where('isAnonymous', '=', true).execute()).length
  const told = async () =>
    (await db.selectFrom('auditEvent').select('actorId').where('action', '=', 'user.deleted').execute())
      .length
  const [before, toldBefore] = [await left(), await told()]
  await prune()
  const deleted = before - (await left())
  assert.ok(deleted >= 650 && deleted < 700, `${deleted}`)
  assert.equal((await told()) - toldBefore, deleted)
  const events = await db.selectFrom('webhookDelivery').select('webhookId').execute()
  assert.equal(events.length, deleted)
  await prune()
  assert.equal(await left(), before - deleted)
})

test('a user whose row another transaction holds is left for the next time, and is not waited for', async () => {
  const who = await signInAnonymously(t)
  await signOut(who)
  await age(who, 31)
  const held = await rows.hold('select from service."user" where id = $1 for no key update', [who.id])
  await prune()
  assert.deepEqual(await exist(who), [true])
  await held.release()
  await prune()
  assert.deepEqual(await exist(who), [false])
})
