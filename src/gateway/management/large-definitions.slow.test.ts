import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['management.*'])

/** Milliseconds that the work took, and the longest time that it kept all other work from its turn. */
async function timed(work: () => Promise<unknown>): Promise<{ took: number; longest: number }> {
  const began = performance.now()
  let longest = 0
  let last = began
  const timer = setInterval(() => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
  }, 5)
  await work()
  clearInterval(timer)
  return { took: performance.now() - began, longest }
}

test('a table with many long defaults does not keep others waiting', async () => {
  const default_expression = `jsonb_build_array(${Array(490).fill(1).join(',')})`
  const columns = Array.from({ length: 900 }, (_, index) => ({
    name: `c${index}`,
    data_type: 'jsonb',
    default_expression,
  }))
  const { took, longest } = await timed(async () => {
    const { status, text } = await key.post('/management/tables', { table_name: 'long', columns })
    // PostgreSQL takes 100 arguments.
    assert.equal(status, 400, text)
  })
  assert.ok(longest < took / 3, `${Math.round(longest)} of ${Math.round(took)} ms`)
})
