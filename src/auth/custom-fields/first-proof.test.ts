import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleUniqueFields } from '#identity/unique-fields.ts'
import { actor, linkIn, PASSWORD, testService } from '#test/harness.ts'

const fields = { company: { required: true }, phone: { unique: true } }
const t = await testService({ config: { auth: { user: { fields } } } })
await settleUniqueFields(t.service.kernel.db, t.config)
const AUTH = '/api/auth'

test('fields of a sign-up stay at the first proof of the address, as the name does, and the owner changes them', async () => {
  const email = 'owner@example.com'
  const stranger = { name: 'Eve', email, password: PASSWORD, company: 'EVIL', phone: '1' }
  const { body } = await t.anon.post(`${AUTH}/sign-up/email`, stranger)
  await t.mails()
  await t.anon.post(`${AUTH}/forget-password`, { email })
  const [mail = ''] = await t.mails()
  const reset = { token: linkIn(mail).split('/').at(-1), newPassword: 'another horse staple' }
  assert.equal((await t.anon.post(`${AUTH}/reset-password`, reset)).status, 200)
  const old = actor(t.url, { authorization: `Bearer ${body.token}` })
  assert.equal((await old.get(`${AUTH}/get-session`)).status, 401)
  const entered = await t.anon.post(`${AUTH}/sign-in/email`, { email, password: 'another horse staple' })
  assert.partialDeepStrictEqual(entered.body.user, { name: 'Eve', company: 'EVIL', phone: '1' })
  const owner = actor(t.url, { authorization: `Bearer ${entered.body.token}` })
  const changed = await owner.post(`${AUTH}/update-user`, { name: 'Ada', company: 'ACME', phone: null })
  assert.equal(changed.status, 200, changed.text)
  const { user } = (await owner.get(`${AUTH}/get-session`)).body
  assert.partialDeepStrictEqual(user, { name: 'Ada', company: 'ACME', phone: null })
})
