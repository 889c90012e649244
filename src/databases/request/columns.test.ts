import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseColumns } from '#databases/request/columns.ts'
import { Failure } from '#kernel/errors.ts'

const options = {
  columns: 20,
  nesting: 3,
  rename: (name: string) => name,
  owner: (path: readonly string[]) => path.join('.') === 'public.books',
}
const parse = (columns: string | string[]) => parseColumns(columns, options)

test('every form of a column is parsed, from one text or from a list', () => {
  const expected = [
    { kind: 'all' },
    { kind: 'column', name: 'b', alias: 'a' },
    { kind: 'column', name: 'c', alias: 'd' },
    { kind: 'column', name: 'f', alias: 'e', cast: 'timestamp with time zone' },
    { kind: 'column', name: 'g', alias: 'h', cast: 'text' },
    { kind: 'column', name: 'title' },
    { kind: 'column', name: 'odd, "name"' },
    { kind: 'column', name: '*' },
    { kind: 'column', name: '*', alias: 'star' },
    { kind: 'all' },
  ]
  const list = [
    '*',
    'a:b',
    'c as d',
    'e:f::timestamp with time zone',
    'g::text as h',
    'public.books.title',
    '"odd, \\"name\\""',
    '"*"',
    'star:public.books."*"',
    'public.books.*',
  ]
  assert.deepEqual(parse(list), expected)
  assert.deepEqual(parse(list.join(' , ')), expected)
})

test('relations nest, with alias, schema and a foreign key as hint', () => {
  assert.deepEqual(parse('author:author_id(name, home:geo.places!home_fkey(*))'), [
    {
      kind: 'relation',
      name: 'author_id',
      alias: 'author',
      columns: [
        { kind: 'column', name: 'name' },
        {
          kind: 'relation',
          name: 'places',
          schema: 'geo',
          hint: 'home_fkey',
          alias: 'home',
          columns: [{ kind: 'all' }],
        },
      ],
    },
  ])
})

test('a column of another table is refused, with a hint how to ask for it', () => {
  assert.throws(() => parse('authors.name'), { code: 'unknown_column', hint: /relation/ })
})

test('too many columns and too deep relations are refused', () => {
  assert.throws(() => parse(Array.from({ length: 21 }, (_, index) => `c${index}`)), {
    code: 'too_many_columns',
  })
  assert.throws(() => parse('a(b(c(d(e))))'), { code: 'too_deep' })
})

test('any text given as columns is parsed or refused with a 400', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.constantFrom('a', '.', ',', '(', ')', '"', '\\', ':', '::', '!', '*', ' as ', ' '),
      fc.string(),
    ),
  )
  fc.assert(
    fc.property(pieces, (parts) => {
      try {
        parse(parts.join(''))
      } catch (error) {
        assert.ok(error instanceof Failure, String(error))
        assert.equal(error.status, 400)
      }
    }),
    { numRuns: 1_000 },
  )
})
