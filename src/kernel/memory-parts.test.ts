import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryParts } from './memory-parts.ts'

const MIB = 1_048_576

test('a buffer counts as external, and objects as used heap', () => {
  const before = memoryParts()
  const buffer = Buffer.alloc(64 * MIB, 1)
  const withBuffer = memoryParts()
  assert.ok(withBuffer.external - before.external >= 64 * MIB)
  const objects = Array.from({ length: 1_000_000 }, (_, index) => ({ index }))
  const withObjects = memoryParts()
  assert.ok(withObjects.heap_used - withBuffer.heap_used > 8 * MIB)
  assert.ok(buffer.length + objects.length > 0)
})

test('the parts together are the resident memory', () => {
  const sum = Object.values(memoryParts()).reduce((total, bytes) => total + bytes, 0)
  const { rss } = process.memoryUsage()
  assert.ok(Math.abs(sum - rss) < 0.1 * rss, `${sum} of ${rss}`)
})
