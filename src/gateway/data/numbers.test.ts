import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['gateway.*'])

/** Compares bodies and responses as text, because parsing would lose the digits under test. */
const ask = (method: string, path: string, raw: string, headers: Record<string, string> = {}) =>
  key.send(method, path, { raw, headers })
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))

before(() =>
  sql(`
    create table amount (id int primary key, exact numeric, doc jsonb, plain json, list numeric[], docs jsonb[], label text, whole int, wholes bigint[]);
    create function twice(value numeric) returns table (result numeric, value_doc jsonb)
      language sql as $$ select value, to_jsonb(value) $$;
    create function times(value int) returns int language sql as $$ select value * 2 $$`),
)

const NUMBERS = [
  '1.10',
  '100.00',
  '-0.50',
  '0.0000001',
  '123456789012345678901234567890.1234567890',
  '12345678901234567890',
]
const row = (id: number, number: string) =>
  `{"id":${id},"exact":${number},"doc":{"n":${number}},"plain":[${number}],"list":[${number},null],"docs":[{"n":${number}}],"label":${number}}`
const shown = (number: string) =>
  `"exact":${number},"doc":{"n": ${number}},"plain":[${number}],"list":[${number},null],"docs":[{"n": ${number}}],"label":"${number}"`

test('numbers keep their digits in every kind of column and write', async () => {
  const rows = NUMBERS.map((number, index) => row(index + 1, number))
  const inserted = await ask(
    'PUT',
    '/gateway/insert',
    `{"table_name":"amount","insert_body":[${rows.join(',')}]}`,
  )
  assert.equal(inserted.status, 200, inserted.text)
  for (const number of NUMBERS)
    assert.ok(inserted.text.includes(shown(number)), `${number} in ${inserted.text}`)

  for (const [index, number] of NUMBERS.entries()) {
    const one = row(index + 101, number)
    const inTransaction = `{"operations":[{"id":"a","kind":"insert","payload":{"table_name":"amount","insert_body":${one}}}]}`
    const headers = { 'idempotency-key': `number-${index}` }
    for (let times = 0; times < 2; times++) {
      const { text, status } = await ask('POST', '/gateway/transaction', inTransaction, headers)
      assert.equal(status, 200, text)
      assert.ok(text.includes(shown(number)), text)
    }
    const set = `{"table_name":"amount","set":${one.replace(/"id":\d+,/, '')},"conditions":[{"column":"id","value":${index + 1}.0}]}`
    const updated = await ask('POST', '/gateway/update', set)
    assert.equal(updated.status, 200, updated.text)
    assert.ok(updated.text.includes(shown(number)), updated.text)
  }
  const fetched = await key.post('/gateway/fetch', { table_name: 'amount' })
  for (const number of NUMBERS) assert.equal(fetched.text.split(shown(number)).length - 1, 2, number)
})

test('conditions, groups, functions and SQL preserve the scale of numbers', async () => {
  for (const number of NUMBERS) {
    const found = await ask(
      'POST',
      '/gateway/fetch',
      `{"table_name":"amount","columns":"exact","conditions":[{"column":"label","value":${number}},{"operator":"in","column":"exact","value":[${number}]}],"group_by":"exact","aggregation_column":"exact"}`,
    )
    assert.equal(found.status, 200, found.text)
    assert.ok(found.text.includes(`"data":[{"exact":${number}},{"exact":${number}}]`), found.text)
    assert.ok(found.text.includes(`"label":"${number}"`), found.text)

    const called = await ask('POST', '/gateway/rpc', `{"function":"twice","args":{"value":${number}}}`)
    assert.ok(called.text.includes(`{"result":${number},"value_doc":${number}}`), called.text)
    const queried = await ask(
      'POST',
      '/gateway/query',
      `{"query":"select $1::numeric as a, $2::jsonb as b, $3::numeric[] as c","params":[${number},{"n":${number}},[${number}]]}`,
    )
    assert.ok(queried.text.includes(`{"a":${number},"b":{"n": ${number}},"c":[${number}]}`), queried.text)
  }
})

test('integers may be written with a zero fraction or an exponent', async () => {
  const inserted = await ask(
    'PUT',
    '/gateway/insert',
    '{"table_name":"amount","insert_body":[{"id":201.0,"whole":3.00,"wholes":[4.0,5e2,1.50e1]},{"id":2.02e2,"whole":7}]}',
  )
  assert.equal(inserted.status, 200, inserted.text)
  const { rows } = await sql('select whole, wholes from amount where id in (201, 202) order by id')
  assert.deepEqual(rows, [
    { whole: 3, wholes: ['4', '500', '15'] },
    { whole: 7, wholes: null },
  ])
  const called = await ask('POST', '/gateway/rpc', '{"function":"times","args":{"value":21.0}}')
  assert.ok(called.text.includes('42'), called.text)
  const queried = await ask('POST', '/gateway/query', '{"query":"select $1::int as a","params":[8.0]}')
  assert.deepEqual(queried.body.data, [{ a: 8 }])
  const cast =
    '{"table_name":"amount","columns":"id","conditions":[{"column":"label","column_cast":"integer","value":100.0,"value_cast":"integer"},{"column":"id","value":2.0}]}'
  await sql(`update amount set label = '100' where id = 2`)
  await sql('delete from amount where id <> 2')
  assert.deepEqual((await ask('POST', '/gateway/fetch', cast)).body.data, [{ id: 2 }])

  const half = await ask(
    'PUT',
    '/gateway/insert',
    '{"table_name":"amount","insert_body":{"id":301,"whole":3.50}}',
  )
  assert.deepEqual([half.status, half.body.data.details.column], [422, 'whole'])
})

test('numeric options of a request accept numbers in every notation', async () => {
  const page = await ask(
    'POST',
    '/gateway/fetch',
    '{"table_name":"amount","limit":1.0,"offset":0e0,"page_size":1.00}',
  )
  assert.equal(page.status, 200, page.text)
  const none = await ask('POST', '/gateway/fetch', '{"table_name":"amount","limit":1.5}')
  assert.equal(none.status, 400)
})
