import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['gateway.*'])

/** Types with invalid values, most of which PostgreSQL rejects without naming the column. */
const MISFITS: readonly (readonly [type: string, ...values: unknown[]])[] = [
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
]

before(() =>
  withClient(t.clientUrl, async (client) => {
    await client.query(`create type mood as enum ('happy'); create type pair as (a int, b varchar(2));
      create domain positive as int check (value > 0)`)
    // Two columns of each type; the first gets a valid value.
    const columns = MISFITS.map(([type], index) => `fits${index} ${type}, misfit${index} ${type}`)
    await client.query(`create table wide (id int primary key, note text, ${columns.join(', ')})`)
    await client.query('insert into wide (id) values (0)')
  }),
)

function names(answer: Answer, column: string, what: string): void {
  assert.equal(answer.status, 422, `${what}: ${answer.text}`)
  assert.equal(answer.body.data.details.column, column, `${what}: ${answer.text}`)
  assert.ok(answer.body.message.includes(column), `${what}: ${answer.text}`)
}

test('an invalid value gets 422 with its column, in every kind of write', async () => {
  for (const [index, [type, ...values]] of MISFITS.entries())
    for (const value of values) {
      const column = `misfit${index}`
      const row = { id: 1, note: String(value), [`fits${index}`]: null, [column]: value }
      const what = (way: string) => `${way} ${JSON.stringify(value)} into ${type}`
      const insert = (insert_body: unknown, more = {}) =>
        key.send('PUT', '/gateway/insert', { body: { table_name: 'wide', insert_body, ...more } })

      names(await insert(row), column, what('one row with'))
      const many = [{ id: 1 }, { id: 2, note: row.note }, { ...row, id: 3 }, { id: 4, note: 'y' }]
      names(await insert(many), column, what('many rows with'))
      const { id: _id, ...set } = row
      const conflict = { on_conflict: 'id', update_body: set }
      names(await insert({ id: 0 }, conflict), column, what('on conflict'))
      const update = { table_name: 'wide', set, conditions: [{ column: 'id', value: 0 }] }
      names(await key.post('/gateway/update', update), column, what('update'))
      const operations = [{ id: 'a', kind: 'insert', payload: { table_name: 'wide', insert_body: row } }]
      names(await key.post('/gateway/transaction', { operations }), column, what('transaction'))
    }
})

test('an invalid value in a condition gets 422 with its column', async () => {
  for (const [index, [type, value]] of MISFITS.entries()) {
    // Comparing with longer texts and larger numbers is valid; comparing with invalid records is not.
    if (!/^(integer|boolean|date|uuid|mood|positive)/.test(type)) continue
    const column = `misfit${index}`
    const note = { column: 'note', value: 'a' }
    for (const condition of [
      { column, value },
      { column, value, operator: 'gt' },
      { column, value: [value], operator: 'in' },
    ]) {
      if (type.endsWith('[]') && condition.operator === 'in') continue
      const body = { table_name: 'wide', conditions: [note, condition] }
      names(await key.post('/gateway/fetch', body), column, `${condition.operator} of ${type}`)
      names(
        await key.send('DELETE', '/gateway/delete', { body }),
        column,
        `delete ${condition.operator} of ${type}`,
      )
      names(await key.post('/query/count', body), column, `count ${condition.operator} of ${type}`)
    }
  }
})
