import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mergePipelines } from './merge.ts'

const member = (value: fc.Arbitrary<unknown>) => fc.option(value, { nil: undefined })
const source = fc.record({
  table_name: member(fc.constantFrom('a', 'b')),
  schema_name: member(fc.constantFrom('x', 'y')),
  columns: member(fc.subarray(['p', 'q', 'r'])),
  limit: member(fc.nat(5)),
})
const transform = fc.record({
  group_by: member(fc.constantFrom('p', 'q')),
  column_aliases: member(fc.dictionary(fc.constantFrom('p', 'q'), fc.option(fc.constantFrom('s', 't')))),
})
const sink = fc.record({
  table_name: member(fc.constantFrom('c', 'd')),
  on_conflict: member(fc.constantFrom('p', ['p', 'q'])),
})
const parts = fc.record({
  source: fc.option(source, { nil: undefined }),
  transform: fc.option(transform, { nil: undefined }),
  sink: fc.option(sink, { nil: undefined }),
})

test('every member of a request replaces the member of the named pipeline, and nothing else does', () => {
  fc.assert(
    fc.property(fc.option(parts, { nil: undefined }), parts, (named, inline) => {
      const merged = mergePipelines(named as never, inline as never)
      for (const part of ['source', 'transform', 'sink'] as const) {
        const [below, above] = [Object(named?.[part]), Object(inline[part])]
        for (const name of new Set([...Object.keys(below), ...Object.keys(above)]))
          assert.deepEqual(Object(merged[part])[name], above[name] === undefined ? below[name] : above[name])
      }
    }),
  )
})

test('an alias of a request replaces table_name of the named pipeline', () => {
  const named = { source: { table_name: 'books', limit: 3 }, sink: { table: 'archive' } }
  for (const alias of ['table_name', 'table', 'view_name'])
    assert.deepEqual(mergePipelines(named, { source: { [alias]: 'good_books' } }), {
      source: { table_name: 'good_books', limit: 3 },
      transform: {},
      sink: { table_name: 'archive' },
    })
})
