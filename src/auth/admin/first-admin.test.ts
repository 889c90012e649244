import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addUsers } from '#identity/add-users.ts'
import { offerFirstAdmin } from '#identity/first-admin.ts'
import { uuidv7 } from '#kernel/random.ts'
import { withClient } from '#test/database.ts'
import { type Answer, PASSWORD, type TestService, testService } from '#test/harness.ts'

const MINUTE = 60_000
const INVALID = [401, 'INVALID_TOKEN']

const offer = ({ service: { kernel } }: TestService) =>
  kernel.db.transaction().execute((db) => offerFirstAdmin({ ...kernel, db }))
async function offered(t: TestService): Promise<string> {
  const token = await offer(t)
  assert.ok(token)
  return token
}
let people = 0
const use = (
  t: TestService,
  token: string,
  more: object = {},
  headers: Record<string, string> = {},
): Promise<Answer> =>
  t.anon.post(
    '/api/auth/admin/create-first-admin',
    { token, name: 'Root', email: `root-${++people}@example.com`, password: PASSWORD, ...more },
    { headers },
  )
const refusal = ({ status, body }: Answer) => [status, body?.code]
const adminsOf = ({ service }: TestService) =>
  service.kernel.db.selectFrom('user').selectAll().where('role', '=', 'admin').execute()

test('the link makes its bearer an admin with a proven address, who signs in, and the trail says so', async () => {
  const t = await testService()
  const made = await use(t, await offered(t), { email: 'Root@Example.com' })
  assert.equal(made.status, 200, made.text)
  const [admin, ...others] = await adminsOf(t)
  assert.deepEqual(
    [admin?.id, admin?.email, admin?.emailVerified, others],
    [made.body.id, 'root@example.com', true, []],
  )
  assert.ok(admin?.emailProvenAt)
  const signedIn = await t.anon.post('/api/auth/sign-in/email', {
    email: 'root@example.com',
    password: PASSWORD,
  })
  assert.equal(signedIn.status, 200)
  const trail = await t.service.kernel.db
    .selectFrom('auditEvent')
    .select(['action', 'actorId', 'targetId'])
    .where('action', '=', 'user.created')
    .execute()
  assert.deepEqual(trail, [{ action: 'user.created', actorId: made.body.id, targetId: made.body.id }])
})

test('of 50 parallel uses of one link one makes an admin', async () => {
  const t = await testService()
  const token = await offered(t)
  const answers = await Promise.all(Array.from({ length: 50 }, () => use(t, token)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200))
    assert.deepEqual(refusal(answer), INVALID)
  assert.equal((await adminsOf(t)).length, 1)
})

test('a link that is used, expired, replaced, unknown or too late fails alike', async () => {
  const t = await testService()
  const replaced = await offered(t)
  const expired = await offered(t)
  assert.deepEqual(refusal(await use(t, replaced)), INVALID)
  t.advance(10 * MINUTE + 1)
  assert.deepEqual(refusal(await use(t, expired)), INVALID)
  for (const unknown of ['x', 'A'.repeat(43), '']) assert.deepEqual(refusal(await use(t, unknown)), INVALID)

  const { kernel } = t.service
  const late = await offered(t)
  const [id, accountId, createdAt] = [
    uuidv7(kernel.now(), kernel.random),
    uuidv7(kernel.now(), kernel.random),
    kernel.now(),
  ]
  const other = {
    id,
    accountId,
    createdAt,
    name: 'Cli',
    email: 'cli@example.com',
    emailVerified: true,
    image: null,
  }
  await addUsers(kernel, [
    {
      ...other,
      username: null,
      displayUsername: null,
      role: 'admin',
      banned: false,
      banReason: null,
      banExpires: null,
      passwordHash: null,
    },
  ])
  assert.deepEqual(refusal(await use(t, late)), INVALID)
  assert.equal(await offer(t), undefined, 'with an admin there is no link')
})

test('what is wrong in the form uses up no link, and an address that is taken neither', async () => {
  const t = await testService()
  const token = await offered(t)
  const ada = await t.signUp('Ada')
  const wrong: readonly (readonly [object, string])[] = [
    [{ email: 'nobody' }, 'INVALID_EMAIL'],
    [{ password: 'short' }, 'PASSWORD_TOO_SHORT'],
    [{ name: '\u202e' }, 'VALIDATION_ERROR'],
    [{ email: ada.email }, 'USER_ALREADY_EXISTS'],
  ]
  for (const [more, code] of wrong) assert.equal((await use(t, token, more)).body.code, code)
  assert.equal((await use(t, token)).status, 200)
})

test('the link is for browsers on this machine: a forwarded request, another name, and a page of another origin are refused', async () => {
  const t = await testService()
  const token = await offered(t)
  assert.equal((await use(t, token, {}, { 'x-forwarded-for': '203.0.113.9' })).status, 421)
  assert.equal((await use(t, token, {}, { host: 'evil.example' })).status, 421)
  for (const origin of ['http://evil.example', 'http://localhost:3000', 'null'])
    assert.equal((await use(t, token, {}, { origin })).status, 421, origin)
  const own = new URL(t.url)
  assert.equal((await use(t, token, {}, { origin: own.origin, host: own.host })).status, 200)
})

test('the database has the hash of the link only', async () => {
  const t = await testService()
  const token = await offered(t)
  const rows = await withClient(t.controlUrl, (client) =>
    client.query(
      `select to_jsonb(v)::text as text from service.verification v where purpose = 'first-admin'`,
    ),
  )
  assert.equal(rows.rows.length, 1)
  assert.ok(!rows.rows[0].text.includes(token))
})

test('without the console there is no such route', async () => {
  const t = await testService({ config: { console: { enabled: false } } })
  assert.equal((await use(t, 'A'.repeat(43))).status, 404)
})

test('the first admin has the defaults of custom fields, as every other user', async () => {
  const t = await testService({ config: { auth: { user: { fields: { plan: { default: 'free' } } } } } })
  const made = await use(t, await offered(t))
  assert.equal(made.status, 200, made.text)
  assert.deepEqual((await adminsOf(t))[0]?.fields, { plan: 'free' })
})
