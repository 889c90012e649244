import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Condition, Json } from '#databases/request/request.ts'
import { OPERATORS } from '#databases/request/request.ts'
import { parseTerms, printTerms } from '#databases/request/terms.ts'
import { Failure } from '#kernel/errors.ts'

const name = fc.string({ minLength: 1 })
const text = fc.string()
const value = (operator: string): fc.Arbitrary<Json> => {
  if (operator === 'in') return fc.array(fc.oneof(text, fc.constant(null)))
  return operator === 'eq' || operator === 'neq' ? fc.oneof(text, fc.constant(null)) : text
}
const comparison = fc.constantFrom(...OPERATORS).chain((operator) =>
  fc.record(
    {
      kind: fc.constant('compare' as const),
      column: name,
      operator: fc.constant(operator),
      value: value(operator),
    },
    { noNullPrototype: true },
  ),
)
const { tree } = fc.letrec<{ tree: Condition<string> }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    comparison,
    fc.record(
      {
        kind: fc.constantFrom('all' as const, 'any' as const),
        terms: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
      },
      { noNullPrototype: true },
    ),
    fc.record({ kind: fc.constant('not' as const), term: tie('tree') }, { noNullPrototype: true }),
  ),
}))

test('terms that are printed and parsed again are unchanged', () => {
  fc.assert(
    fc.property(fc.array(tree, { minLength: 1, maxLength: 3 }), (terms) => {
      assert.deepEqual(parseTerms(printTerms(terms), 100), terms)
    }),
  )
})

test('any text given as terms is parsed or refused with a 400', () => {
  const pieces = fc.array(
    fc.oneof(
      fc.constantFrom(
        'a',
        '.',
        ',',
        '(',
        ')',
        '"',
        '\\',
        '{',
        '}',
        'eq',
        'in',
        'not',
        'and(',
        'or(',
        '::',
        ' ',
        'null',
      ),
      fc.string(),
    ),
  )
  fc.assert(
    fc.property(pieces, (parts) => {
      try {
        parseTerms(parts.join(''), 10)
      } catch (error) {
        assert.ok(error instanceof Failure, String(error))
        assert.equal(error.status, 400)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('terms nest as PostgREST writes them', () => {
  const terms = parseTerms('a.eq.1,b.is.null,and(c.in.(1,"x,y"),not.or(d.like.%a b%,e.not.cs.{1,2}))', 10)
  assert.deepEqual(terms, [
    { kind: 'compare', column: 'a', operator: 'eq', value: '1' },
    { kind: 'compare', column: 'b', operator: 'is', value: 'null' },
    {
      kind: 'all',
      terms: [
        { kind: 'compare', column: 'c', operator: 'in', value: ['1', 'x,y'] },
        {
          kind: 'not',
          term: {
            kind: 'any',
            terms: [
              { kind: 'compare', column: 'd', operator: 'like', value: '%a b%' },
              { kind: 'not', term: { kind: 'compare', column: 'e', operator: 'contains', value: '{1,2}' } },
            ],
          },
        },
      ],
    },
  ])
})

test('terms nested deeper than allowed are refused, at any depth', () => {
  const nested = (depth: number) => `${'and('.repeat(depth)}a.eq.1${')'.repeat(depth)}`
  assert.equal(parseTerms(nested(10), 10).length, 1)
  assert.throws(() => parseTerms(nested(11), 10), { code: 'too_deep' })
  assert.throws(() => parseTerms(nested(100_000), 10), { code: 'too_deep' })
})

test('unquoted null is the null value, quoted null is a text', () => {
  assert.deepEqual(parseTerms('a.eq.null,b.eq."null"', 1), [
    { kind: 'compare', column: 'a', operator: 'eq', value: null },
    { kind: 'compare', column: 'b', operator: 'eq', value: 'null' },
  ])
})
