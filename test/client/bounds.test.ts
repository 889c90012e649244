import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '#client/client.ts'
import { type Answer, answering, rows } from './answering-server.ts'

test('a signal ends the request, also between two of them', async () => {
  const controller = new AbortController()
  const waiting = await answering((response) => {
    controller.abort()
    response.destroy()
  })
  const { error } = await waiting.orders.select('id').signal(controller.signal)
  assert.deepEqual([error?.code, error?.status, waiting.received.length], ['aborted', 0, 1])
  const { error: before } = await waiting.orders.insert({ id: 1 }).signal(controller.signal)
  assert.deepEqual([before?.code, waiting.received.length], ['aborted', 1])
  // As AbortSignal.timeout() does it.
  const late = new AbortController()
  const { orders } = await answering(() => late.abort(new DOMException('late', 'TimeoutError')))
  assert.equal((await orders.select('id').signal(late.signal)).error?.code, 'timeout')
})

test('a timeout counts the attempts and the wait for the session', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const silent: Answer = () => t.mock.timers.tick(60_000)
  const { orders, received } = await answering(silent)
  for (const query of [
    orders.select('id'),
    orders.count(),
    orders.delete().eq('id', 1),
    orders.insert({ id: 1 }),
  ])
    assert.equal((await query.timeout(60_000)).error?.code, 'timeout')
  assert.equal(received.length, 4)
  const session = () => {
    queueMicrotask(() => t.mock.timers.tick(60_000))
    return new Promise<string>(() => {})
  }
  const hanging = createClient({ url: 'http://127.0.0.1:1', session })
  assert.equal((await hanging.from('orders').select('id').timeout(60_000)).error?.code, 'timeout')
})

test('a timeout that no timer can hold is a long one', async (t) => {
  const { orders } = await answering(rows)
  const timers = t.mock.method(globalThis, 'setTimeout')
  for (const long of [Number.POSITIVE_INFINITY, 2 ** 40, 2 ** 31])
    assert.deepEqual(await orders.select('id').timeout(long).orThrow(), [{ id: 1 }])
  const longest = Math.max(...timers.mock.calls.map(({ arguments: [, time = 0] }) => time))
  assert.equal(longest, 2 ** 31 - 1)
})
