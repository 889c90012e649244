import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MIB = 1_048_576

const MODULE = JSON.stringify(new URL('./memory-parts.ts', import.meta.url).href)
const start = promisify(execFile)

/** In a process of its own, whose garbage is its own. */
const SCRIPT = `
import { memoryParts } from ${MODULE}
const atFirst = memoryParts()
const buffer = Buffer.alloc(${64 * MIB}, 1)
const withBuffer = memoryParts()
const objects = Array.from({ length: 1_000_000 }, (_, index) => ({ index }))
const withObjects = memoryParts()
const resident = process.memoryUsage().rss
console.log(JSON.stringify({ atFirst, withBuffer, withObjects, resident, kept: buffer.length + objects.length }))`

test('a buffer counts as external, objects as used heap, and the parts together are the resident memory', async () => {
  const { stdout } = await start(process.execPath, ['--input-type=module', '-e', SCRIPT])
  const { atFirst, withBuffer, withObjects, resident } = JSON.parse(stdout)
  assert.ok(withBuffer.external - atFirst.external >= 64 * MIB)
  assert.ok(withObjects.heap_used - withBuffer.heap_used > 8 * MIB)
  const sum = Object.values<number>(withObjects).reduce((total, bytes) => total + bytes, 0)
  assert.ok(Math.abs(sum - resident) < 0.1 * resident, `${sum} of ${resident}`)
})

const WITHOUT_FILES = `
import { openSync } from 'node:fs'
import { createMetrics } from ${JSON.stringify(new URL('./metrics.ts', import.meta.url).href)}
const { registry } = createMetrics(() => new Date())
try {
  for (;;) openSync('/dev/null')
} catch {}
console.log(await registry.metrics())`

test('a process that may open no more files tells its other metrics', {
  skip: process.platform !== 'linux',
}, async () => {
  const script = [process.execPath, '--input-type=module', '-e', WITHOUT_FILES]
  const { stdout } = await start('/bin/sh', ['-c', 'ulimit -n 200; exec "$0" "$@"', ...script])
  assert.match(stdout, /^nodejs_heap_size_used_bytes \d/m)
  assert.match(stdout, /^# TYPE gatehouse_memory_bytes gauge$/m)
  assert.doesNotMatch(stdout, /^gatehouse_memory_bytes\{/m)
})
