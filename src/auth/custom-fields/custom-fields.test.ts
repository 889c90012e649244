import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleUniqueFields } from '#identity/unique-fields.ts'
import { ADMIN_KEY, type Answer, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { codeIn } from '#test/mailed-codes.ts'

const FIELDS = {
  plan: { values: ['free', 'pro'], default: 'free' },
  nickname: { unique: true },
  company: { required: true },
  age: { type: 'number' },
  born: { type: 'date' },
  news: { type: 'boolean' },
  tags: { type: 'string[]' },
  scores: { type: 'number[]' },
  tier: { input: false, default: 'bronze' },
  note: { input: false, returned: false },
} as const
const t = await testService({
  config: { auth: { user: { fields: FIELDS }, magic_link: { enabled: true }, email_otp: { enabled: true } } },
})
const { db } = t.service.kernel
await settleUniqueFields(db, t.config)
const NEW = { plan: 'free', nickname: null, company: 'ACME', tier: 'bronze' }
const EMPTY = { age: null, born: null, news: null, tags: null, scores: null }

let count = 0
const fresh = (): string => `user-${++count}@example.com`
const signUp = (fields: object, email = fresh()) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD, ...fields })
const by = ({ body }: Answer) => ({ headers: { authorization: `Bearer ${body.token}` } })
const session = async (of: Answer) => (await t.anon.get('/api/auth/get-session', by(of))).body.user
const update = (of: Answer, body: object) => t.anon.post('/api/auth/update-user', body, by(of))
const stored = async (email: string) =>
  (await db.selectFrom('user').select('fields').where('email', '=', email).executeTakeFirst())?.fields
async function admin() {
  const answer = await signUp({ company: 'us' })
  await db.updateTable('user').set({ role: 'admin' }).where('id', '=', answer.body.user.id).execute()
  await t.service.kernel.coherence.settle()
  return by(answer)
}

test('sign-up takes fields of every type, and answers and get-session show them', async () => {
  const given = {
    ...{ plan: 'pro', company: 'ACME', age: 36.5, news: false },
    ...{ born: '1815-12-10', tags: ['a', 'b'], scores: [1, 2.5] },
  }
  const answer = await signUp(given)
  assert.equal(answer.status, 200, answer.text)
  const expected = { ...NEW, ...given, born: '1815-12-10T00:00:00.000Z' }
  assert.partialDeepStrictEqual(answer.body.user, expected)
  assert.partialDeepStrictEqual(await session(answer), expected)
  const again = await t.anon.post('/api/auth/sign-in/email', {
    email: answer.body.user.email,
    password: PASSWORD,
  })
  assert.partialDeepStrictEqual(again.body.user, expected)
})

test('a new user has the defaults, and null for what was not given', async () => {
  const answer = await signUp({ company: 'ACME' })
  assert.partialDeepStrictEqual(answer.body.user, { ...NEW, ...EMPTY })
  assert.deepEqual(await stored(answer.body.user.email), { plan: 'free', company: 'ACME', tier: 'bronze' })
})

const REFUSED: readonly (readonly [fields: object, code: string, names: RegExp])[] = [
  [{}, 'VALIDATION_ERROR', /company/],
  [{ company: null }, 'VALIDATION_ERROR', /company/],
  [{ company: 5 }, 'VALIDATION_ERROR', /company/],
  [{ company: 'x'.repeat(1_001) }, 'VALIDATION_ERROR', /company/],
  [{ company: 'A\u0007' }, 'VALIDATION_ERROR', /company/],
  [{ company: 'A', nickname: 'x'.repeat(256) }, 'VALIDATION_ERROR', /nickname/],
  [{ company: 'A', plan: 'gold' }, 'VALIDATION_ERROR', /plan/],
  [{ company: 'A', age: 'old' }, 'VALIDATION_ERROR', /age/],
  [{ company: 'A', news: 'perhaps' }, 'VALIDATION_ERROR', /news/],
  [{ company: 'A', born: '2026-02-30' }, 'VALIDATION_ERROR', /born/],
  [{ company: 'A', tags: 'a' }, 'VALIDATION_ERROR', /tags/],
  [{ company: 'A', tags: [1] }, 'VALIDATION_ERROR', /tags/],
  [{ company: 'A', tags: [{ a: 1 }] }, 'VALIDATION_ERROR', /tags/],
  [{ company: 'A', tags: Array(101).fill('a') }, 'VALIDATION_ERROR', /tags/],
  [{ company: 'A', tags: Array(100).fill('a'.repeat(50)) }, 'VALIDATION_ERROR', /4096/],
  [{ company: 'A', tier: 'gold' }, 'FIELD_NOT_ALLOWED', /tier/],
  [{ company: 'A', note: 'x' }, 'FIELD_NOT_ALLOWED', /note/],
]

test('a value that is none of its field, or not the user’s to set, is refused by name', async () => {
  const before = await db.selectFrom('user').select('id').execute()
  for (const [fields, code, names] of REFUSED) {
    const { status, body } = await signUp(fields)
    assert.deepEqual([status, body.code], [400, code], JSON.stringify(fields).slice(0, 80))
    assert.match(body.message, names)
  }
  assert.equal((await db.selectFrom('user').select('id').execute()).length, before.length)
})

test('update-user changes fields in every session at once, and null removes one that is not required', async () => {
  const answer = await signUp({ company: 'ACME', age: 3 })
  assert.equal((await session(answer)).age, 3)
  assert.equal((await update(answer, { age: 4, tags: ['x'] })).status, 200)
  assert.partialDeepStrictEqual(await session(answer), { company: 'ACME', age: 4, tags: ['x'] })
  assert.equal((await update(answer, { age: null })).status, 200)
  assert.partialDeepStrictEqual(await session(answer), { age: null, tags: ['x'] })
  for (const [body, code] of [
    [{ company: null }, 'VALIDATION_ERROR'],
    [{ tier: 'gold' }, 'FIELD_NOT_ALLOWED'],
    [{ unknown: 'x' }, 'NO_FIELDS_TO_UPDATE'],
    [{ fields: { tier: 'gold' } }, 'NO_FIELDS_TO_UPDATE'],
  ] as const)
    assert.equal((await update(answer, body)).body.code, code, JSON.stringify(body))
  const [act] = await db
    .selectFrom('auditEvent')
    .select('details')
    .where('action', '=', 'user.updated')
    .where('targetId', '=', answer.body.user.id)
    .orderBy('id', 'desc')
    .execute()
  assert.deepEqual(act?.details, { fields: ['age'] })
})

test('a unique value belongs to one user, of many who want it at once too', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => signUp({ company: 'A', nickname: 'the one' })),
  )
  const codes = answers.map(({ status, body }) => body.code ?? status).toSorted()
  assert.deepEqual(codes, [200, ...Array(19).fill('FIELD_VALUE_IS_ALREADY_TAKEN')])
  const refused = answers.find(({ status }) => status === 409)
  assert.deepEqual(
    [refused?.body.message, refused?.body.details],
    ['Another user has this nickname', { field: 'nickname' }],
  )

  const other = await signUp({ company: 'A', nickname: 'another' })
  assert.equal((await update(other, { nickname: 'the one' })).body.code, 'FIELD_VALUE_IS_ALREADY_TAKEN')
  assert.equal((await update(other, { nickname: 'another', age: 1 })).status, 200)
  assert.equal((await update(other, { nickname: null })).status, 200)
  assert.equal((await signUp({ company: 'A', nickname: 'another' })).status, 200)
})

test('an admin sets every field, also one that users may not set, and finds users by fields', async () => {
  const ada = await signUp({ company: 'Findable', age: 41 })
  const head = await admin()
  const { id, email } = ada.body.user
  const changed = await t.anon.post(
    '/api/auth/admin/update-user',
    { userId: id, data: { tier: 'gold', note: 'pays late' } },
    head,
  )
  assert.equal(changed.status, 200, changed.text)
  assert.deepEqual([changed.body.tier, 'note' in changed.body], ['gold', false])
  assert.partialDeepStrictEqual(await stored(email), { tier: 'gold', note: 'pays late' })
  assert.deepEqual([(await session(ada)).tier, 'note' in (await session(ada))], ['gold', false])

  const create = (data: object) =>
    t.anon.post(
      '/api/auth/admin/create-user',
      { name: 'Eve', email: fresh(), password: PASSWORD, data },
      head,
    )
  assert.equal((await create({})).body.code, 'MISSING_FIELD')
  assert.equal((await create({ company: 'X', other: 1 })).body.code, 'VALIDATION_ERROR')
  assert.equal((await create({ company: 'Findable', age: 9, tier: 'gold' })).body.user.tier, 'gold')

  const list = async (query: string) => {
    const { body } = await t.anon.get(`/api/auth/admin/list-users?${query}`, head)
    return body.users?.map((user: { age: number }) => user.age) ?? body.code
  }
  assert.deepEqual(await list('filterField=company&filterValue=Findable&sortBy=age'), [9, 41])
  assert.deepEqual(await list('filterField=age&filterOperator=gt&filterValue=40.5'), [41])
  assert.deepEqual(await list('filterField=note&filterOperator=contains&filterValue=late'), [41])
  assert.deepEqual(await list('filterField=tags&filterValue=a'), 'VALIDATION_ERROR')
})

test('users without a value of a field are among those whose value is another one, whatever its type', async () => {
  const company = 'Others'
  await signUp({ company, age: 1, news: true, nickname: 'first of others' })
  const { body } = await signUp({ company })
  const head = await admin()
  for (const [field, value] of Object.entries({ age: 1, news: true, nickname: 'first of others' }))
    for (const operator of ['ne', 'not_in']) {
      const query = `filterField=${field}&filterOperator=${operator}&filterValue=${value}&sortBy=createdAt&sortDirection=desc`
      const { users } = (await t.anon.get(`/api/auth/admin/list-users?${query}`, head)).body
      const found = users.filter((user: { company: string }) => user.company === company)
      assert.deepEqual(
        found.map(({ id }: { id: string }) => id),
        [body.user.id],
        `${field} ${operator}`,
      )
    }
})

test('a link and a code by mail take fields for a new user; without a required one nobody is added, and the link stays valid', async () => {
  const [asked, bare, coded] = [fresh(), fresh(), fresh()]
  const ask = async (email: string, fields: object) => {
    const answer = await t.anon.post('/api/auth/sign-in/magic-link', { email, ...fields })
    assert.equal(answer.status, 200, answer.text)
    const [mail = ''] = await t.mails()
    return { token: new URL(linkIn(mail), t.url).searchParams.get('token') ?? '', code: codeIn(mail) }
  }
  const verify = (token: string) => t.anon.get(`/api/auth/magic-link/verify?token=${token}`)
  const { body } = await verify((await ask(asked, { company: 'Link', age: 5 })).token)
  assert.partialDeepStrictEqual(body.user, { company: 'Link', age: 5, plan: 'free' })
  const closed = await t.anon.post('/api/auth/sign-in/magic-link', { email: asked, tier: 'gold' })
  assert.equal(closed.body.code, 'FIELD_NOT_ALLOWED')

  const { token, code } = await ask(bare, {})
  for (const _ of [1, 2]) assert.equal((await verify(token)).body.code, 'MISSING_FIELD')
  assert.equal(await stored(bare), undefined)
  const byCode = (email: string, otp: string, fields: object) =>
    t.anon.post('/api/auth/sign-in/email-otp', { email, otp, ...fields })
  assert.equal((await byCode(bare, code, {})).body.code, 'MISSING_FIELD')
  assert.equal((await byCode(bare, code, { company: 'Code' })).body.user.company, 'Code')

  const { code: other } = await ask(coded, { company: 'Asked' })
  assert.equal((await byCode(coded, other, { age: 2 })).body.user.company, 'Asked')
})

test('the API reference shows the fields of this installation', async () => {
  const { body: document } = await t.anon.get('/openapi.json', { headers: { 'x-admin-key': ADMIN_KEY } })
  const { User, FullUser, UserFields, SignUpEmailBody } = document.components.schemas
  for (const schema of [User, FullUser]) {
    assert.deepEqual(schema.properties.age, { type: ['number', 'null'] })
    assert.ok(schema.required.includes('tags'))
    assert.equal('note' in schema.properties, false)
  }
  assert.ok('note' in UserFields.properties)
  assert.ok(SignUpEmailBody.required.includes('company'))
  assert.deepEqual(Object.keys(SignUpEmailBody.properties).filter((name) => name in FIELDS).toSorted(), [
    'age', 'born', 'company', 'news', 'nickname', 'plan', 'scores', 'tags',
  ]) // biome-ignore format: one line reads better
})
