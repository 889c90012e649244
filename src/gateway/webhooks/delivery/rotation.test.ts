import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import {
  addEvents,
  addWebhook,
  FOR_CLIENT,
  newSecret,
  type ReceivedEvent,
  startReceiver,
  verified,
} from '#test/webhooks.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

const clock = testClock()
const t = await testService({ config: { outbound: TO_LOOPBACK }, clock })
const { kernel, deliveries: workers } = t.service

/** Sends an event; those of the secrets by which the official package verifies it. */
async function signersOf(webhook: string, received: readonly ReceivedEvent[], secrets: readonly string[]) {
  await addEvents(kernel, webhook)
  await workers.drain()
  const event = received.at(-1)
  assert.ok(event)
  const isSigner = (secret: string): boolean => {
    try {
      return verified(secret, event) !== undefined
    } catch (error) {
      assert.match(String(error), /No matching signature/)
      return false
    }
  }
  return verifiedAt(event.headers['webhook-timestamp'], () => secrets.filter(isSigner))
}

const rotate = (id: string) => t.admin.post(`/admin/webhooks/${id}/rotate-secret`, {}, FOR_CLIENT)

test('each secret signs for a day after its rotation, however many rotations follow', async () => {
  const { url, received } = await startReceiver()
  const { id, secret: first } = await addWebhook(kernel, { url })
  const second: string = (await rotate(id)).body.data.secret
  clock.advance(HOUR)
  const third: string = (await rotate(id)).body.data.secret
  const signers = () => signersOf(id, received, [first, second, third])
  assert.deepEqual(await signers(), [first, second, third])
  clock.advance(DAY - HOUR)
  assert.deepEqual(await signers(), [second, third])
  clock.advance(HOUR)
  assert.deepEqual(await signers(), [third])
})

test('a secret of the operator is a rotation too; the present one again changes nothing', async () => {
  const { url, received } = await startReceiver()
  const { id, secret: old } = await addWebhook(kernel, { url })
  const fresh = newSecret()
  const put = (secret: string) =>
    t.admin.send('PATCH', `/admin/webhooks/${id}`, { body: { secret }, ...FOR_CLIENT })
  assert.equal((await put('whsec_c2hvcnQ=')).body.code, 'invalid_webhook')
  for (let count = 0; count < 6; count++) {
    const { status, text } = await put(fresh)
    assert.deepEqual([status, text.includes(fresh)], [200, false])
  }
  assert.deepEqual(await signersOf(id, received, [old, fresh]), [old, fresh])
  clock.advance(DAY)
  assert.deepEqual(await signersOf(id, received, [old, fresh]), [fresh])
})

test('five former secrets sign at most: a further rotation is refused until the oldest one ends', async () => {
  const { id } = await addWebhook(kernel, { url: 'https://hooks.example.com' })
  for (let count = 0; count < 5; count++) assert.equal((await rotate(id)).status, 200)
  clock.advance(HOUR)
  const refused = await rotate(id)
  assert.deepEqual([refused.status, refused.body.code], [429, 'too_many_requests'])
  const wait = Number(refused.headers.get('retry-after'))
  assert.ok(wait > 0 && wait <= 23 * 3_600, String(wait))
  clock.advance(wait * SECOND)
  assert.equal((await rotate(id)).status, 200)
})

/** The official package compares with the machine's clock, which the test's clock is ahead of. */
function verifiedAt<T>(timestamp: unknown, verify: () => T): T {
  const { now } = Date
  Date.now = () => Number(timestamp) * SECOND
  try {
    return verify()
  } finally {
    Date.now = now
  }
}
