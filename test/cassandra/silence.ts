import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCalls } from '#test/drivers/calls.ts'
import { proxyTo } from '#test/hostile/proxy.ts'
import { driverOn } from './driver.ts'
import type { Place } from './keys.ts'

const took = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const down = { code: 'client_unavailable', status: 503 }
const late = { code: 'statement_timeout', status: 504 }

/** Tests of a server that does not answer, or not in time. */
export function testSilence({ keyspace, skip }: Place): void {
  test('a frozen node holds callers for connect_timeout, whatever time a statement has, and then nobody', {
    skip,
  }, async (t) => {
    const proxy = await proxyTo(keyspace().url)
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
    const held = await took(() =>
      Promise.all([
        assert.rejects(fetch({ table: 'calm' }), { ...late, hint: undefined }),
        assert.rejects(insert('calm', { id: 2 }), { ...late, hint: /not known whether the write was done/ }),
      ]),
    )
    assert.ok(held > 900 && held < 3_000, `${held} ms`)
    assert.equal(driver.stats().circuit, 'open')
    const refused = await took(() => assert.rejects(fetch({ table: 'calm' }), down))
    assert.ok(refused < 200, `${refused} ms`)
    // A new connection is accepted there, and hears nothing either.
    await new Promise((resolve) => setTimeout(resolve, 1_050))
    const probed = await took(() => assert.rejects(fetch({ table: 'calm' }), down))
    assert.ok(probed < 2_500, `${probed} ms`)
    await proxy.mend()
    for (let round = 0; round < 100 && driver.stats().circuit !== 'closed'; round++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      await fetch({ table: 'calm' }).catch(() => {})
    }
    assert.ok((await fetch({ table: 'calm' })).rows.length >= 1)
  })

  test('five time-outs in a row open the circuit, and one statement at a time is tried after that', {
    skip,
  }, async (t) => {
    await keyspace().run('create table if not exists calm (id int primary key)')
    const proxy = await proxyTo(keyspace().url, { delay: 60 })
    const driver = driverOn(proxy.url, { statementTimeout: 40 })
    t.after(async () => {
      await driver.close()
      await proxy.close()
    })
    const { fetch } = createCalls(() => driver)
    const { insert } = createCalls(() => driver)
    for (let round = 0; round < 5; round++) await assert.rejects(fetch({ table: 'calm' }), late)
    assert.equal(driver.stats().circuit, 'open')
    await assert.rejects(fetch({ table: 'calm' }), down)
    await new Promise((resolve) => setTimeout(resolve, 1_050))
    // A value that does not fit says nothing about the server: the next statement is the probe.
    await assert.rejects(insert('calm', { id: 'x' }), { code: 'invalid_value' })
    await assert.rejects(fetch({ table: 'calm' }), late)
    assert.equal(driver.stats().circuit, 'open')
  })

  test('an answer between time-outs leaves the circuit closed', { skip }, async (t) => {
    const proxy = await proxyTo(keyspace().url, { delay: 60 })
    const driver = driverOn(proxy.url, { statementTimeout: 40 })
    t.after(async () => {
      await driver.close()
      await proxy.close()
    })
    const { fetch } = createCalls(() => driver)
    for (let round = 0; round < 12; round++) {
      await assert.rejects(fetch({ table: 'calm' }), late)
      if (round % 4 === 3) await driver.probe()
    }
    assert.equal(driver.stats().circuit, 'closed')
  })
}
