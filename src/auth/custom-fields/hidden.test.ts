import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { settleUniqueFields, UniqueFieldError } from '#identity/unique-fields.ts'
import { PASSWORD, testService } from '#test/harness.ts'

const t = await testService({
  config: {
    auth: {
      hide_registered_emails: true,
      email_password: { require_email_verification: true },
      user: { fields: { phone: { unique: true }, plan: { required: true } } },
    },
  },
})
const { db } = t.service.kernel
await settleUniqueFields(db, t.config)
const withUnique = (...names: string[]) => ({
  ...t.config,
  auth: { ...t.config.auth, user: { fields: Object.fromEntries(names.map((name) => [name, { ...PHONE }])) } },
})
const PHONE = {
  ...t.config.auth.user.fields.phone,
  unique: true,
} as (typeof t.config.auth.user.fields)[string]

const signUp = async (email: string, fields: object) => {
  const { status, body, headers } = await t.anon.post('/api/auth/sign-up/email', {
    ...{ name: 'Eve', email, password: PASSWORD },
    ...fields,
  })
  const shown = Object.entries(body.user ?? {}).filter(
    ([name]) => !['id', 'email', 'createdAt', 'updatedAt'].includes(name),
  )
  return { status, code: body.code, message: body.message, shown, names: [...headers.keys()] }
}

/** The requests of a stranger who wants to find out whether the address has an account. */
async function probe(email: string, mark: string) {
  const steps = [
    () => signUp(email, { plan: 'free' }),
    () => signUp(email, { plan: 'free', phone: '555-owner' }),
    () => signUp(email, { plan: 'free', phone: mark }),
    () => signUp(`${mark}@example.com`, { plan: 'free', phone: mark }),
    () => signUp(email, { plan: 'free', phone: mark }),
    () => signUp(email, {}),
    () => signUp(email, { plan: 5 }),
  ]
  const all: Awaited<ReturnType<typeof signUp>>[] = []
  for (const step of steps) all.push(await step())
  return JSON.parse(JSON.stringify(all).replaceAll(mark, 'MARK'))
}

test('no field of a sign-up tells an address with an account from one without', async () => {
  const owner = await signUp('ada@example.com', { plan: 'pro', phone: '555-owner' })
  assert.equal(owner.status, 200)
  await db.updateTable('user').set({ emailVerified: true, emailProvenAt: new Date() }).execute()
  const taken = await probe('ada@example.com', '555-taken')
  const free = await probe('nobody@example.com', '555-free')
  assert.deepEqual(taken, free)
  const codes = free.map(({ status, code }: { status: number; code?: string }) => code ?? status)
  const isTaken = 'FIELD_VALUE_IS_ALREADY_TAKEN'
  assert.deepEqual(codes, [200, isTaken, 200, isTaken, isTaken, 'VALIDATION_ERROR', 'VALIDATION_ERROR'])
  const { fields } = await db
    .selectFrom('user')
    .select('fields')
    .where('email', '=', 'ada@example.com')
    .executeTakeFirstOrThrow()
  assert.deepEqual(fields, { plan: 'pro', phone: '555-owner' })
})

test('the values of a user who goes are free again', async () => {
  const email = 'gone@example.com'
  await signUp(email, { plan: 'free', phone: '555-gone' })
  await db.deleteFrom('user').where('email', '=', email).execute()
  assert.equal((await signUp(email, { plan: 'free', phone: '555-gone' })).status, 200)
})

test('a field becomes unique at the start, unless users have equal values; it ends to be unique at the next', async () => {
  for (const name of ['one', 'two']) await signUp(`${name}@plan.example`, { plan: 'equal', phone: name })
  await assert.rejects(settleUniqueFields(db, withUnique('phone', 'plan')), (error: Error) => {
    assert.ok(error instanceof UniqueFieldError)
    return /auth\.user\.fields\.plan\.unique: \d+ values? belongs? to several users/.test(error.message)
  })
  await settleUniqueFields(db, withUnique())
  const [one, two] = [1, 2].map((index) =>
    signUp(`same-${index}@example.com`, { plan: 'free', phone: 'one' }),
  )
  assert.deepEqual([(await one)?.status, (await two)?.status], [200, 200])
  await assert.rejects(
    settleUniqueFields(db, withUnique('phone')),
    /auth\.user\.fields\.phone\.unique: 1 value/,
  )
  await db.deleteFrom('user').where('email', 'like', 'same-%').execute()
  await settleUniqueFields(db, t.config)
  assert.equal(
    (await signUp('again@example.com', { plan: 'free', phone: 'one' })).code,
    'FIELD_VALUE_IS_ALREADY_TAKEN',
  )
})

test('a field does not become unique while a value of it is longer than a unique one can be, and the start says so', async () => {
  await settleUniqueFields(db, withUnique())
  // Without a pattern that would shorten it in the index.
  const phone = Array.from({ length: 1_000 }, () => String.fromCodePoint(0x4e00 + randomInt(20_000))).join('')
  const { id } = await db
    .updateTable('user')
    .set({ fields: JSON.stringify({ phone }) })
    .where('email', '=', 'ada@example.com')
    .returning('id')
    .executeTakeFirstOrThrow()
  await assert.rejects(settleUniqueFields(db, withUnique('phone')), (error: Error) => {
    assert.ok(error instanceof UniqueFieldError, error.message)
    return /auth\.user\.fields\.phone\.unique: 1 values are longer/.test(error.message)
  })
  await db.updateTable('user').set({ fields: '{}' }).where('id', '=', id).execute()
})
