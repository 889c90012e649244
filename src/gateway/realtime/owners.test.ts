import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownersIn } from './owners.ts'

const tables = ['locked', 'open'].map((table) => ({
  table: { schema: 'public', table },
  keys: [{ op: 'insert' as const, key: { json: '{"id":1}', values: ['1'] } }],
}))

test('changes do not wait for the owners of rows of a table that is locked', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const feed = {
    values: async ({ table }: { readonly table: string }) => {
      if (table === 'locked') await new Promise(() => {})
      return new Map([['{"id":1}', ['ada']]])
    },
  }
  const asked = ownersIn(feed, { tables }, () => ['user_id'])
  t.mock.timers.tick(10_000)
  const owners = await asked
  assert.deepEqual([...owners.keys()], [tables[1]])
})
