import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MIB = 1_048_576

/** In a process of its own, whose garbage is its own. */
const SCRIPT = `
import { memoryParts } from ${JSON.stringify(new URL('./memory-parts.ts', import.meta.url).href)}
const atFirst = memoryParts()
const buffer = Buffer.alloc(${64 * MIB}, 1)
const withBuffer = memoryParts()
const objects = Array.from({ length: 1_000_000 }, (_, index) => ({ index }))
const withObjects = memoryParts()
const resident = process.memoryUsage().rss
console.log(JSON.stringify({ atFirst, withBuffer, withObjects, resident, kept: buffer.length + objects.length }))`

test('a buffer counts as external, objects as used heap, and the parts together are the resident memory', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', SCRIPT])
  const { atFirst, withBuffer, withObjects, resident } = JSON.parse(stdout)
  assert.ok(withBuffer.external - atFirst.external >= 64 * MIB)
  assert.ok(withObjects.heap_used - withBuffer.heap_used > 8 * MIB)
  const sum = Object.values<number>(withObjects).reduce((total, bytes) => total + bytes, 0)
  assert.ok(Math.abs(sum - resident) < 0.1 * resident, `${sum} of ${resident}`)
})
