import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shared } from './health.ts'

test('requests at the same time share a check, also one that fails, and the next request makes another', async () => {
  const checks: PromiseWithResolvers<string>[] = []
  const ask = shared(() => {
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
