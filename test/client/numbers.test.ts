import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { createClient } from '#client/client.ts'
import { parseExact } from '#client/json.ts'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const { apiKey: key } = await t.key(['gateway.read'])
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))

before(() =>
  sql(`
    create table amounts as select 1::int as small, 9007199254740993::int8 as big, 9007199254740992::int8 as even, 10000000000000000000000::numeric as whole, (-9223372036854775808)::int8 as least,
    1.10::numeric as price, 0.1::float8 as real, 1e21::float8 as large, 1e-7::float8 as tiny, 12345678901234567890.5::numeric as sum, 'NaN'::float8 as none;
    create table odd as select 1 as id, '{"polluted": true}'::jsonb as "__proto__", 2 as "constructor"`),
)

test('numbers are doubles, or exact: bigints and texts where a double would lose digits', async () => {
  const options = { url: t.url, key }
  const doubles = await createClient(options).from('amounts').select().single().orThrow()
  assert.deepEqual(doubles, {
    small: 1,
    big: 9007199254740992,
    even: 9007199254740992,
    whole: 1e22,
    least: -(2 ** 63),
    price: 1.1,
    real: 0.1,
    large: 1e21,
    tiny: 1e-7,
    sum: 12345678901234567000,
    none: 'NaN',
  })
  const exact = await createClient({ ...options, numbers: 'exact' })
    .from('amounts')
    .select()
    .single()
    .orThrow()
  assert.deepEqual(exact, {
    small: 1,
    big: 9007199254740993n,
    even: 9007199254740992n,
    whole: 10n ** 22n,
    least: -9223372036854775808n,
    price: '1.10',
    real: 0.1,
    large: 1e21,
    tiny: 1e-7,
    sum: '12345678901234567890.5',
    none: 'NaN',
  })
})

test('engines that do not show the text of a number read the same', () => {
  const number = fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})\.[0-9]{1,20}$/),
    fc.constantFrom('-0', '0.0', '1e5', '1E-7', '100000000000000000000'),
  )
  const text = fc
    .oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\0', '\0\0', '\x001', '\0\x0012', '"1.10"', '\\u00001', '\\\\"2.50'),
    )
    .map((value) => JSON.stringify(value))
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      number,
      text,
      fc.constantFrom('null', 'true'),
      fc.array(tie('value')).map((items) => `[${items.join(', ')}]`),
      fc
        .array(fc.tuple(text, tie('value')))
        .map((members) => `{${members.map(([name, inner]) => `${name}: ${inner}`).join(',')}}`),
    ),
  }))
  fc.assert(
    fc.property(value, (json) => {
      assert.deepEqual(parseExact(json, false), parseExact(json, true))
    }),
    { numRuns: 2_000 },
  )
  assert.throws(() => parseExact('{"a": 1.10', false), SyntaxError)
})

test('a column with the name __proto__ is a column, and touches no prototype', async () => {
  for (const numbers of ['number', 'exact'] as const) {
    const client = createClient({ url: t.url, key, numbers })
    const rows = [
      await client.from('odd').select().single().orThrow(),
      await client.from('odd').select('id, __proto__, constructor').single().orThrow(),
      await client
        .from('odd')
        .select(JSON.parse('{"id": true, "__proto__": true, "constructor": true}'))
        .single()
        .orThrow(),
      ...(await Array.fromAsync(client.from('odd').select().order({ id: 'asc' }).all())),
    ]
    for (const row of rows) {
      assert.deepEqual(Object.keys(row), ['id', '__proto__', 'constructor'])
      assert.equal(Object.getPrototypeOf(row), Object.prototype)
      assert.deepEqual(Object.getOwnPropertyDescriptor(row, '__proto__')?.value, { polluted: true })
    }
  }
  // What JSON.parse itself does, with a reviver and without.
  for (const parse of [
    JSON.parse,
    (text: string) => parseExact(text, true),
    (text: string) => parseExact(text, false),
  ]) {
    const row = parse('{"__proto__": {"polluted": 1.10}}') as object
    assert.equal(Object.getPrototypeOf(row), Object.prototype)
    assert.ok(Object.hasOwn(row, '__proto__'))
  }
  assert.equal('polluted' in {}, false)
})
