import assert from 'node:assert/strict'
import { test } from 'node:test'
import { singleFlight } from './single-flight.ts'

test('callers at the same time share a call, also one that fails, and the next caller makes another', async () => {
  const checks: PromiseWithResolvers<string>[] = []
  const ask = singleFlight(() => {
    const check = Promise.withResolvers<string>()
    checks.push(check)
    return check.promise
  })
  const asked = [ask(), ask(), ask()]
  checks[0]?.resolve('ready')
  assert.deepEqual([await Promise.all(asked), checks.length], [['ready', 'ready', 'ready'], 1])
  const again = [ask(), ask()]
  checks[1]?.reject(new Error('silent'))
  assert.equal((await Promise.allSettled(again)).filter(({ status }) => status === 'rejected').length, 2)
  const last = ask()
  assert.equal(checks.length, 3)
  checks[2]?.resolve('ready')
  assert.equal(await last, 'ready')
})
