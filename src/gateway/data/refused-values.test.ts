import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['gateway.*'])

/** Each type with invalid values. For most of them, PostgreSQL does not name the column in the error. */
const INVALID_VALUES: readonly (readonly [type: string, ...values: unknown[]])[] = [
  ['integer', 'x', 1e12, 1.5],
  ['numeric(5,2)', 12345678, '999.995', -1000],
  ['boolean', 'maybe'],
  ['date', '2026-02-30'],
  ['uuid', 'x"y'],
  ['varchar(3)', 'long text'],
  ['char(3)', 'long text'],
  ['bit(3)', '11111'],
  ['mood', 'sad'],
  ['positive', 'x', -1],
  ['integer[]', 'x', ['y'], [1e12]],
  ['numeric(5,2)[]', [1, 12345678]],
  ['varchar(3)[]', ['ok', 'long text']],
  ['uuid[]', ['z']],
  ['pair', '(x,y)', { a: 1, b: 'long' }],
  ['tsquery', '& x'],
]

before(() =>
  withClient(t.clientUrl, async (client) => {
    await client.query(`create type mood as enum ('happy'); create type pair as (a int, b varchar(2));
      create domain positive as int check (value > 0)`)
    // Two columns of each type; the first gets a valid value.
    const columns = INVALID_VALUES.map(([type], index) => `valid${index} ${type}, invalid${index} ${type}`)
    await client.query(`create table wide (id int primary key, note text, ${columns.join(', ')})`)
    await client.query('insert into wide (id) values (0)')
  }),
)

function assertNamesColumn(answer: Answer, column: string, label: string): void {
  assert.equal(answer.status, 422, `${label}: ${answer.text}`)
  assert.equal(answer.body.data.details.column, column, `${label}: ${answer.text}`)
  assert.ok(answer.body.message.includes(column), `${label}: ${answer.text}`)
}

test('every kind of write answers an invalid value with 422 and the name of its column', async () => {
  for (const [index, [type, ...values]] of INVALID_VALUES.entries())
    for (const value of values) {
      const column = `invalid${index}`
      const row = { id: 1, note: String(value), [`valid${index}`]: null, [column]: value }
      const label = (way: string) => `${way} ${JSON.stringify(value)} into ${type}`
      const insert = (insert_body: unknown, more = {}) =>
        key.send('PUT', '/gateway/insert', { body: { table_name: 'wide', insert_body, ...more } })

      assertNamesColumn(await insert(row), column, label('one row with'))
      const many = [{ id: 1 }, { id: 2, note: row.note }, { ...row, id: 3 }, { id: 4, note: 'y' }]
      assertNamesColumn(await insert(many), column, label('many rows with'))
      const { id: _id, ...set } = row
      const conflict = { on_conflict: 'id', update_body: set }
      assertNamesColumn(await insert({ id: 0 }, conflict), column, label('on conflict'))
      const update = { table_name: 'wide', set, conditions: [{ column: 'id', value: 0 }] }
      assertNamesColumn(await key.post('/gateway/update', update), column, label('update'))
      const operations = [{ id: 'a', kind: 'insert', payload: { table_name: 'wide', insert_body: row } }]
      assertNamesColumn(await key.post('/gateway/transaction', { operations }), column, label('transaction'))
    }
})

test('a condition with an invalid value gets 422 and the name of its column', async () => {
  for (const [index, [type, value]] of INVALID_VALUES.entries()) {
    // Comparing with longer texts and larger numbers is valid; comparing with invalid records is not.
    if (!/^(integer|boolean|date|uuid|mood|positive)/.test(type)) continue
    const column = `invalid${index}`
    const note = { column: 'note', value: 'a' }
    for (const condition of [
      { column, value },
      { column, value, operator: 'gt' },
      { column, value: [value], operator: 'in' },
    ]) {
      if (type.endsWith('[]') && condition.operator === 'in') continue
      const body = { table_name: 'wide', conditions: [note, condition] }
      assertNamesColumn(await key.post('/gateway/fetch', body), column, `${condition.operator} of ${type}`)
      assertNamesColumn(
        await key.send('DELETE', '/gateway/delete', { body }),
        column,
        `delete ${condition.operator} of ${type}`,
      )
      assertNamesColumn(
        await key.post('/query/count', body),
        column,
        `count ${condition.operator} of ${type}`,
      )
    }
  }
})
