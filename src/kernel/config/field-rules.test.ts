import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, load } from '#test/configuration.ts'

const ofField = (field: string, name = 'plan') =>
  complaints({ yaml: `auth: { user: { fields: { ${name}: { ${field} } } } }` }).map((line) =>
    line.replace('gatehouse.yaml:1 auth.user.fields.', ''),
  )

test('a name is no built-in member in any case, and has no underscore', () => {
  for (const name of ['phoneNumber', 'a', 'vip2', 'stripeCustomerId', 'x'.repeat(40)])
    assert.deepEqual(ofField('type: string', name), [], name)
  const refused = [
    ...[
      'id',
      'name',
      'email',
      'role',
      'banned',
      'emailVerified',
      'emailverified',
      'createdAt',
      'fields',
      'password',
    ],
    ...[
      'email_verified',
      'created_at',
      'phone_number',
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
    ],
    ...['callbackURL', 'rememberMe', 'Plan', '2nd', 'a-b', '"a.b"', '"a b"', 'x'.repeat(41), 'ä'],
  ]
  for (const name of refused)
    assert.match(ofField('type: string', name)[0] ?? '', /a field name must be/, name)
})

test('settings of a field that exclude each other are refused', () => {
  const refused = [
    ['type: number, values: [a]', 'plan.values: needs auth.user.fields.plan.type string or string[]'],
    ['values: [a, b, a]', 'plan.values: names a value twice'],
    ['type: boolean, unique: true', 'plan.unique: needs auth.user.fields.plan.type string, number or date'],
    ['unique: true, default: a', 'plan.unique: excludes a default, which the second user could not have'],
    ['values: [a, b], default: c', 'plan.default: must be one of a, b'],
    ['type: number, default: many', 'plan.default: must be a number'],
    ['type: "number[]", default: "1,x"', 'plan.default: must be a list of at most 100 numbers'],
    ['type: date, default: tomorrow', 'plan.default: must be a date like 2026-01-31T12:00:00Z'],
    [
      'required: true, input: false',
      'plan.required: needs auth.user.fields.plan.input: true or a default, otherwise nobody can sign up',
    ],
  ] as const
  for (const [field, problem] of refused) assert.deepEqual(ofField(field), [problem])
  const fine = [
    'type: "number[]", default: "1, 2.5"',
    'type: boolean, default: "true"',
    'required: true, default: x',
  ]
  for (const field of fine) assert.deepEqual(ofField(field), [], field)
})

test('the environment sets all fields as one JSON text', () => {
  const env = { SERVICE_AUTH__USER__FIELDS: '{"phoneNumber": {"unique": true}}' }
  assert.equal(load({ env }).auth.user.fields.phoneNumber?.unique, true)
})
