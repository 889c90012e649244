import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRunLimit } from './run-limit.ts'

test('the number of runs is bounded, for each client at half of all', async () => {
  const runs = createRunLimit(4)
  const leave = [await runs.acquire(['a', 'b']), await runs.acquire(['a', 'a'])]
  let hasEntered = false
  const third = runs.acquire(['b', 'a']).then((leave) => {
    hasEntered = true
    return leave
  })
  leave.push(await runs.acquire(['c']))
  assert.equal(hasEntered, false)
  leave[0]?.()
  leave.push(await third)
  const waiting = Array.from({ length: 100 }, () => runs.acquire(['a']))
  await assert.rejects(runs.acquire(['a']), { code: 'too_many_runs', status: 503 })
  for (const give of leave) give()
  for (const next of waiting) (await next)()
})
