import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '#client/client.ts'
import { invalidate } from '#client/query/invalidate.ts'
import { queryOptions } from '#client/query/query-options.ts'

/** A client whose streams have these events, and then stay open. */
const clientOf = (...events: readonly (readonly [name: string, data: object])[]) =>
  createClient({
    url: 'http://service',
    fetch: async (_, init) => {
      const text = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode(text))
            init?.signal?.addEventListener('abort', () => controller.error(init.signal?.reason))
          },
        }),
      )
    },
  })
const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test('tables of one name in several schemas are told apart, as the service calls them', async (context) => {
  const changed = (table: string) => ['change', { table, op: 'update', key: {}, row: {} }] as const
  const db = clientOf(['ready', {}], changed('shop.items'))
  const readsOf = (client: typeof db) => [
    client.from('items').select(),
    client
      .schema('shop' as 'public')
      .from('items')
      .select(),
  ]
  const keys = readsOf(db).map((read) => queryOptions(read).queryKey)
  const told: (readonly boolean[])[] = []
  const cache = {
    invalidateQueries: async ({
      predicate,
    }: {
      predicate(query: { queryKey: readonly unknown[] }): boolean
    }) => void told.push(keys.map((queryKey) => predicate({ queryKey }))),
  }
  context.after(invalidate(cache, db, readsOf(db)))
  await settle()
  assert.deepEqual(told.at(-1), [true, true])
  const later = clientOf(['reset', {}], changed('shop.items'))
  context.after(invalidate(cache, later, readsOf(later)))
  await settle()
  assert.deepEqual(told.at(-1), [false, true])
})
