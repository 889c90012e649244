import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'

test('texts that exhaust the stack of the parser do not affect later ones', async () => {
  const deep = `select 1${'+1'.repeat(12_000)}`
  const text = "select a, 'ü😀' from b where c = $1"
  const expected = JSON.stringify(await parse(text))
  for (let round = 0; round < 40; round++) await assert.rejects(parse(deep), DepthFailure)
  await Promise.all(
    Array.from({ length: 10 }, async (_, index) => {
      if (index % 2 === 0) return assert.rejects(parse(deep), DepthFailure)
      assert.equal(JSON.stringify(await parse(text)), expected)
    }),
  )
  assert.equal(JSON.stringify(await parse(text)), expected)
})

test('a syntax error has the message of PostgreSQL', async () => {
  await assert.rejects(parse('selec 1'), (error: Error) => {
    assert.ok(error instanceof SyntaxFailure)
    assert.equal(error.message, 'syntax error at or near "selec"')
    return true
  })
  assert.equal((await parse('')).stmts?.length ?? 0, 0)
})
