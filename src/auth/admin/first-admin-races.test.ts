import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { actAsOperator } from '#identity/act.ts'
import { addUsers } from '#identity/add-users.ts'
import { offerFirstAdmin } from '#identity/first-admin.ts'
import { lockAdmins } from '#identity/roles.ts'
import { tell } from '#identity/tell.ts'
import { uuidv7 } from '#kernel/random.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { actor, linkIn, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { setRoleByOperator } from './operator.ts'

let people = 0
const use = (t: TestService, token: string) =>
  t.anon.post('/api/auth/admin/create-first-admin', {
    ...{ token, name: 'Root', email: `root-${++people}@example.com`, password: PASSWORD },
  })
const linkOf = async ({ service: { kernel } }: TestService): Promise<string> => {
  const token = await kernel.db.transaction().execute((db) => offerFirstAdmin({ ...kernel, db }))
  assert.ok(token)
  return token
}
const adminsOf = ({ service }: TestService) =>
  service.kernel.db.selectFrom('user').select('id').where('role', '=', 'admin').execute()

test('of 50 parallel uses of one link in two processes one makes an admin', async () => {
  const one = await testService()
  const other = await testService({ controlUrl: one.controlUrl })
  const token = await linkOf(one)
  const uses = Array.from({ length: 50 }, (_, index) => use(index % 2 === 0 ? one : other, token))
  const statuses = (await Promise.all(uses)).map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [200, ...Array.from({ length: 49 }, () => 401)])
  assert.equal((await adminsOf(one)).length, 1)
})

/** Verbs that make an admin where there is none. */
const VERBS: Readonly<Record<string, (t: TestService) => Promise<unknown>>> = {
  'the command that sets a role': async (t) =>
    setRoleByOperator(t.service.kernel, (await createPerson(t)).id, 'admin'),
  'the command that adds a user, and an import': async ({ service: { kernel } }) => {
    const createdAt = kernel.now()
    const [id, accountId] = [uuidv7(createdAt, kernel.random), uuidv7(createdAt, kernel.random)]
    const user = {
      ...{ id, accountId, createdAt, name: 'Cli', email: `cli-${++people}@example.com`, emailVerified: true },
      ...{ image: null, username: null, displayUsername: null, role: 'admin', passwordHash: null },
      ...{ banned: false, banReason: null, banExpires: null },
    }
    return actAsOperator(kernel, async (kernel) => {
      await addUsers(kernel, [user])
      await tell(kernel, 'user.created', { targetId: id, details: { role: 'admin' } })
    })
  },
}

test('while a link is redeemed no other verb makes an admin, and then the link makes none', async () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    const t = await testService()
    const token = await linkOf(t)
    await behindLock(t, async () => {
      const made = verb(t)
      await waitForLock(t)
      assert.deepEqual(await adminsOf(t), [], name)
      return () => made
    })
    assert.equal((await adminsOf(t)).length, 1, name)
    assert.equal((await use(t, token)).status, 401, name)
  }
})

test('while a link is redeemed an anonymous user of auth.admin.user_ids stays anonymous, and then the link makes none', async () => {
  const anonymous = { enabled: true }
  const plain = await testService({ config: { auth: { anonymous } } })
  const who = await signInAnonymously(plain)
  const auth = { anonymous, admin: { user_ids: [who.id] } }
  const t = await testService({ controlUrl: plain.controlUrl, config: { auth } })
  const own = actor(t.url, who.headers)
  const asked = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
  assert.equal((await own.post('/api/auth/sign-up/email', asked)).status, 200)
  const [mail = ''] = await t.mails()
  const link = new URL(linkIn(mail), t.url).searchParams.get('token')
  const token = await linkOf(t)
  await behindLock(t, async () => {
    const upgraded = own.post('/api/auth/verify-email', { token: link, password: PASSWORD })
    await waitForLock(t)
    assert.equal((await own.get('/api/auth/get-session')).body.user.isAnonymous, true)
    return async () => assert.equal((await upgraded).status, 200)
  })
  assert.equal((await use(t, token)).status, 401)
})

/** Runs the work while the lock is held, and then what it returns. */
async function behindLock(
  { service }: TestService,
  work: () => Promise<() => Promise<unknown>>,
): Promise<void> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>()
  const redemption = service.kernel.db.transaction().execute(async (db) => {
    await lockAdmins(db)
    hold()
    await released
  })
  await isHeld
  const rest = await work()
  release()
  await redemption
  await rest()
}

/** Until a statement waits for the lock. */
async function waitForLock({ service: { kernel } }: TestService): Promise<void> {
  for (;;) {
    const { rows } = await sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`.execute(
      kernel.db,
    )
    if (rows.length > 0) return
  }
}
