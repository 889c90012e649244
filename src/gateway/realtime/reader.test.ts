import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Batch, ChangeFeed, ResetReason } from '#databases/drivers/changes.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { eventually } from '#test/embedded.ts'
import { createReader } from './reader.ts'

const table = { schema: 'public', table: 'note' }
const unchanged: Batch = { position: '2', tables: [], isRestructured: false, lagSeconds: 0 }

/** A reader of a feed whose batches are given, and what it has asked the feed for. */
function readerOf(read: () => Batch) {
  const asked: string[] = []
  const feed = {
    tables: async () => [{ table, key: ['id'] }],
    policies: async () => {
      asked.push('policies')
      return { claims: [], tables: [] }
    },
    position: async () => {
      asked.push('position')
      return '1'
    },
    read: async () => read(),
  }
  // It takes no more of both than these.
  const kernel = { coherence: { isTrusted: () => true } } as unknown as Kernel
  const poller = { isDue: () => false, hasRead() {}, close() {} }
  const keys = { count() {}, discount() {} }
  return { asked, reader: createReader(kernel, feed as unknown as ChangeFeed, async () => poller, keys) }
}

test('what was asked of a table before the first position of a reader is asked again after it', async () => {
  const { asked, reader } = readerOf(() => unchanged)
  const version = reader.version()
  await reader.policies(table)
  // A policy that has changed meanwhile is told by no batch after the position.
  await reader.begin()
  assert.notEqual(reader.version(), version, 'a stream opens its tables again')
  await reader.policies(table)
  await reader.begin()
  assert.deepEqual(asked, ['policies', 'position', 'policies'])
  reader.close()
})

for (const [reset, isRestructured] of [
  ['watched', false],
  ['truncated', false],
  // Of a table that is not live any more: each of its changes is told so.
  ['table_changed', false],
  ['table_changed', true],
] as readonly (readonly [ResetReason, boolean])[])
  test(`streams that begin ${isRestructured ? 'do' : 'do not'} begin anew with a table that is told as ${reset}, ${isRestructured ? 'with' : 'without'} another structure`, async () => {
    let batch = unchanged
    const { reader } = readerOf(() => batch)
    await reader.begin()
    const version = reader.version()
    batch = { position: '3', tables: [{ table, reset }], isRestructured, lagSeconds: 0 }
    reader.wake()
    await eventually(() => reader.position() === '3')
    assert.equal(reader.version() !== version, isRestructured)
    reader.close()
  })
