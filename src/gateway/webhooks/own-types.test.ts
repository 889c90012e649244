import assert from 'node:assert/strict'
import { test } from 'node:test'
import { membersOf, rowTexts } from '#databases/drivers/json-rows.ts'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { addWebhook } from '#test/webhooks.ts'

const t = await testService()
const { db } = t.service.kernel
const key = await t.key(['*'])
const NAMES = ['id', 'done', 'big', 'exact', 'ratio', 'doc', 'raw', 'at', 'utc', 'word', 'tags'] as const
const TEXTS = NAMES.map((name) => `${name}::text`)
await withClient(t.clientUrl, (client) =>
  client.query(`create domain flag as boolean;
    create table task (id int primary key, done flag, big bigint, exact numeric, ratio float8, doc jsonb, raw json, at timestamp,
      utc timestamptz, word text, tags text[])`),
)
await addWebhook(t.service.kernel, { url: 'https://hooks.example.com/in' })

/** Members of the only row of the last event, as texts of JSON. */
async function lastRow(): Promise<Record<string, string>> {
  const event = await db
    .selectFrom('webhookEvent')
    .select('body')
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  const rows = membersOf(membersOf(event.body).get('data') ?? '').get('rows') ?? ''
  return Object.fromEntries(membersOf(rowTexts(rows)[0] ?? ''))
}

const insert = async (row: object, columns: readonly string[]) => {
  const answer = await key.send('PUT', '/gateway/insert', {
    body: { table_name: 'task', insert_body: row, columns },
  })
  assert.equal(answer.status, 200, answer.text)
  return answer
}

const ROWS = [
  {
    done: true,
    ...{ big: '9007199254740993', exact: '1.10', ratio: 1e-7, doc: { a: [1, 'x"y'] }, raw: '{ "a" :  1.0 }' },
    ...{ at: '2026-01-31 00:00:00.5', utc: '2026-01-31 01:00:00+01', word: 'say "true"', tags: ['a', 'b'] },
  },
  {
    done: false,
    ...{ big: '-1', exact: 'NaN', ratio: 'Infinity', doc: 'text', raw: '[]' },
    ...{ at: 'infinity', utc: '0044-03-15 12:00:00 BC', word: 'null', tags: [] },
  },
  { done: null, word: null },
]

for (const [index, row] of ROWS.entries())
  test(`the event of a write has the row, whatever form its caller wants it in: ${index + 1}`, async () => {
    const id = 10 * index
    await insert({ id, ...row }, NAMES)
    const plain = await lastRow()
    const answer = await insert({ id: id + 1, ...row }, TEXTS)
    const { id: changed, tags, ...own } = await lastRow()
    assert.equal(changed, String(id + 1))
    const { id: _, tags: list, ...others } = plain
    assert.deepEqual(own, others)
    // Its text is another one than that of its members.
    if (list !== 'null') assert.match(tags ?? '', /^"\{/)
    const values: unknown[] = Object.values(answer.body.data[0])
    assert.ok(values.every((value) => value === null || typeof value === 'string'))
  })

test('a filter judges such a row by the types of its columns', async () => {
  const filtered = await addWebhook(t.service.kernel, { url: 'https://hooks.example.com/filtered' })
  await db
    .updateTable('webhook')
    .set({ filter: JSON.stringify({ column: 'done', value: true }) })
    .where('id', '=', filtered.id)
    .execute()
  await t.service.kernel.coherence.settle()
  for (const [id, done] of [
    [100, false],
    [101, true],
  ])
    await insert({ id, done }, TEXTS)
  const rows = db.selectFrom('webhookDelivery').innerJoin('webhookEvent', 'webhookEvent.id', 'eventId')
  const found = await rows.select('body').where('webhookId', '=', filtered.id).execute()
  assert.deepEqual(
    found.map(({ body }) => JSON.parse(body).data.rows?.map((row: { id: number }) => row.id)),
    [[101]],
  )
})
