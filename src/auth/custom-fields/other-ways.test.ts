import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importUsers } from '#identity/import/import.ts'
import { settleUniqueFields } from '#identity/unique-fields.ts'
import { linesOf } from '#kernel/lines.ts'
import { actor, PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'

const SECRET = 'a value that leaves nowhere'
const fields = {
  company: { required: true },
  phone: { unique: true },
  note: { input: false, returned: false },
}
const { t, idp, kernel, db } = await startSocialService({
  user: { fields },
  multi_session: { enabled: true },
  one_time_token: { enabled: true },
})
await settleUniqueFields(db, t.config)

const signUp = (email: string, more: object) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD, ...more })
const stored = async (email: string) =>
  (await db.selectFrom('user').select('fields').where('email', '=', email).executeTakeFirst())?.fields

test('a provider adds no user who lacks a required field', async () => {
  idp.visitor = person('Newcomer')
  const { email = '' } = idp.visitor
  assert.equal(await createVisitor(t).signIn(), '/failed?error=missing_field')
  assert.equal(await stored(email), undefined)
})

test('a field that is not returned leaves by no answer of a session', async () => {
  const { body } = await signUp('secret@example.com', { company: 'A' })
  await db
    .updateTable('user')
    .set({ fields: JSON.stringify({ company: 'A', note: SECRET }), emailVerified: true })
    .where('id', '=', body.user.id)
    .execute()
  await kernel.coherence.settle()
  const ada = actor(t.url, { authorization: `Bearer ${body.token}` })
  const asked = { name: 'Secret', slug: 'secret' }
  const { id } = (await ada.post('/api/auth/organization/create', asked)).body
  const { token: oneTime } = (await ada.get('/api/auth/one-time-token/generate')).body
  const answers = [
    await ada.get('/api/auth/get-session'),
    await ada.get('/api/auth/list-sessions'),
    await ada.get('/api/auth/multi-session/list-device-sessions'),
    await ada.get('/api/auth/token'),
    await ada.get(`/api/auth/organization/get-full-organization?organizationId=${id}`),
    await ada.get('/api/auth/list-accounts'),
    await ada.post('/api/auth/update-user', { company: 'B' }),
    await t.anon.post('/api/auth/one-time-token/verify', { token: oneTime }),
    await t.anon.post('/api/auth/sign-in/email', { email: 'secret@example.com', password: PASSWORD }),
  ]
  for (const [index, answer] of answers.entries()) {
    assert.equal(answer.status, 200, `${index} ${answer.text}`)
    assert.ok(!answer.text.includes(SECRET) && !answer.text.includes('"note"'), answer.text)
    for (const part of answer.body?.token?.split?.('.') ?? [])
      assert.ok(!Buffer.from(part, 'base64url').toString().includes(SECRET))
  }
  assert.partialDeepStrictEqual(answers[7]?.body.user, { company: 'B', phone: null })
  const acts = await db.selectFrom('auditEvent').selectAll().execute()
  assert.ok(!JSON.stringify(acts).includes(SECRET))
})

test('an admin who impersonates a user changes no field', async () => {
  const ada = await signUp('impersonated@example.com', { company: 'A' })
  const head = await signUp('head@example.com', { company: 'A' })
  await db.updateTable('user').set({ role: 'admin' }).where('id', '=', head.body.user.id).execute()
  await kernel.coherence.settle()
  const admin = actor(t.url, { authorization: `Bearer ${head.body.token}` })
  const begun = await admin.post('/api/auth/admin/impersonate-user', { userId: ada.body.user.id })
  assert.equal(begun.body.user.company, 'A', begun.text)
  const acting = actor(t.url, { authorization: `Bearer ${begun.body.session.token}` })
  const refused = await acting.post('/api/auth/update-user', { company: 'B' })
  assert.deepEqual([refused.status, refused.body.code], [403, 'NOT_WHILE_IMPERSONATING'])
  assert.equal((await acting.post('/api/auth/update-user', { name: 'B' })).status, 200)
})

test('an import takes every field; a line without a required one, or with a taken value, is bad', async () => {
  const lines = [
    { company: 'A', phone: '1', note: 'from the old system' },
    { phone: '2' },
    { company: 'A', phone: '1' },
    { company: 'A', phone: 7 },
    { company: 'A', unknown: 'x' },
  ].map((line, index) => JSON.stringify({ email: `imported-${index}@example.com`, name: 'Ada', ...line }))
  async function* chunks() {
    yield Buffer.from(lines.join('\n'))
  }
  const complaints: string[] = []
  const run = (dryRun: boolean) =>
    importUsers(kernel, linesOf(chunks()), {
      dryRun,
      onBadLine: (number, why) => complaints.push(`${number}: ${why}`),
    })
  const { added, bad, ignored } = await run(false)
  assert.deepEqual([added, bad, [...ignored]], [2, 3, ['unknown']], complaints.join('\n'))
  assert.deepEqual(complaints.splice(0).toSorted(), [
    '2: company is required',
    '3: the value of a unique field belongs to another user',
    '4: phone must be a text of at most 255 characters without control characters',
  ])
  const first = { company: 'A', phone: '1', note: 'from the old system' }
  assert.deepEqual(await stored('imported-0@example.com'), first)
  assert.deepEqual(await stored('imported-4@example.com'), { company: 'A' })
  assert.equal((await signUp('late@example.com', { company: 'A', phone: '1' })).status, 409)
})
