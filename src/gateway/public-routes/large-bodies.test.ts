import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRoutes } from '#test/public-routes.ts'

const { t, route, change, stranger } = await createRoutes()

test('a body without a key has few values, and that of an update few bytes', async () => {
  const key = await route({ allowed_ops: ['insert', 'update'], columns: ['id', 'title'] })
  const holder = await t.key(['book.*'])
  const many = `{"insert_body":[${Array(60_000).fill('{"none":1.10}').join()}]}`
  const long = `{"set":{"none":"${'x'.repeat(1_100_000)}"},"where":{"id":1}}`
  const ask = (who: typeof stranger, op: string, raw: string) =>
    who.post(`/public/${key}/${op}`, undefined, { raw })
  for (const who of [stranger, holder])
    for (const [op, raw] of [
      ['insert', many],
      ['update', long],
    ] as const) {
      // biome-ignore format: pairs
      const refused = await ask(who, op, raw)
      assert.deepEqual([refused.status, refused.body.code], [413, 'payload_too_large'], op)
    }
  assert.equal((await change(key, { requires_key: true })).status, 200)
  for (const [op, raw] of [
    ['insert', many],
    ['update', long],
  ] as const) {
    // biome-ignore format: pairs
    const read = await ask(holder, op, raw)
    assert.deepEqual([read.status, read.body.code], [400, 'unknown_column'], read.text)
  }
})
