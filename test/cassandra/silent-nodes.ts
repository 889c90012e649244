import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCalls } from '#test/drivers/calls.ts'
import { startProxy } from '#test/hostile/proxy.ts'
import { driverOn } from './driver.ts'
import type { Place } from './keys.ts'

const took = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const DOWN = { code: 'client_unavailable', status: 503 }
const LATE = { code: 'statement_timeout', status: 504 }

/** Tests of a server that does not respond, or responds too LATE. */
export function testSilentNodes({ keyspace, skip }: Place): void {
  test('a frozen node delays callers for connect_timeout at most; later callers fail at once', {
    skip,
  }, async (t) => {
    const proxy = await startProxy(keyspace().url)
    const driver = driverOn(proxy.url, { connectTimeout: 1_000, statementTimeout: 30_000 })
    t.after(async () => {
      await driver.close()
      await proxy.close()
    })
    const { fetch, insert } = createCalls(() => driver)
    await keyspace().run('create table if not exists calm (id int primary key)')
    await fetch({ table: 'calm' })
    await insert('calm', { id: 1 })
    proxy.freeze()
    const delayed = await took(() =>
      Promise.all([
        assert.rejects(fetch({ table: 'calm' }), { ...LATE, hint: undefined }),
        assert.rejects(insert('calm', { id: 2 }), { ...LATE, hint: /not known whether the write was done/ }),
      ]),
    )
    assert.ok(delayed > 900 && delayed < 3_000, `${delayed} ms`)
    assert.equal(driver.stats().circuit, 'open')
    const refused = await took(() => assert.rejects(fetch({ table: 'calm' }), DOWN))
    assert.ok(refused < 200, `${refused} ms`)
    // The proxy accepts a new connection, but does not respond on it either.
    await new Promise((resolve) => setTimeout(resolve, 1_050))
    const probed = await took(() => assert.rejects(fetch({ table: 'calm' }), DOWN))
    assert.ok(probed < 2_500, `${probed} ms`)
    await proxy.mend()
    for (let round = 0; round < 300 && driver.stats().circuit !== 'closed'; round++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      await fetch({ table: 'calm' }).catch(() => {})
    }
    assert.ok((await fetch({ table: 'calm' })).rows.length >= 1)
  })

  test('five consecutive timeouts open the circuit; then only one statement at a time is tried', {
    skip,
  }, async (t) => {
    await keyspace().run('create table if not exists calm (id int primary key)')
    const proxy = await startProxy(keyspace().url, { delay: 60 })
    const driver = driverOn(proxy.url, { statementTimeout: 40 })
    t.after(async () => {
      await driver.close()
      await proxy.close()
    })
    const { fetch } = createCalls(() => driver)
    const { insert } = createCalls(() => driver)
    for (let round = 0; round < 5; round++) await assert.rejects(fetch({ table: 'calm' }), LATE)
    assert.equal(driver.stats().circuit, 'open')
    await assert.rejects(fetch({ table: 'calm' }), DOWN)
    await new Promise((resolve) => setTimeout(resolve, 1_050))
    // An invalid value is not a sign of the server's state, so the next statement is the probe.
    await assert.rejects(insert('calm', { id: 'x' }), { code: 'invalid_value' })
    await assert.rejects(fetch({ table: 'calm' }), LATE)
    assert.equal(driver.stats().circuit, 'open')
  })

  test('a response between timeouts keeps the circuit closed', { skip }, async (t) => {
    const proxy = await startProxy(keyspace().url, { delay: 60 })
    const driver = driverOn(proxy.url, { statementTimeout: 40 })
    t.after(async () => {
      await driver.close()
      await proxy.close()
    })
    const { fetch } = createCalls(() => driver)
    for (let round = 0; round < 12; round++) {
      await assert.rejects(fetch({ table: 'calm' }), LATE)
      if (round % 4 === 3) await driver.probe()
    }
    assert.equal(driver.stats().circuit, 'closed')
  })
}
