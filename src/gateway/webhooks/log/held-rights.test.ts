import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { addEvents, FOR_CLIENT, startReceiver } from '#test/webhooks.ts'

const t = await testService({
  config: {
    outbound: TO_LOOPBACK,
    auth: {
      admin: {
        roles: {
          watcher: { operator: ['webhooks'], gateway: { default: ['notes.read'] } },
          blind: { operator: ['webhooks'], gateway: { default: ['orders.read'] } },
          lister: { user: ['list'] },
        },
      },
    },
  },
})
const { kernel, deliveries: workers } = t.service
const { db } = kernel
const receiver = await startReceiver((response) => response.end('the row that I was sent'))
const [blind, watcher] = [
  byBearer(t, await operatorOf(t, 'blind')),
  byBearer(t, await operatorOf(t, 'watcher')),
]

/** A webhook that the operator's key has made. */
async function made(more: object): Promise<string> {
  const { status, body, text } = await t.admin.post(
    '/admin/webhooks',
    { url: receiver.url, ...more },
    FOR_CLIENT,
  )
  assert.equal(status, 201, text)
  return body.data.id
}
const NOTES = { route_key: 'gateway_insert', table_name: 'notes' }

async function delivered(webhook: string) {
  await addEvents(kernel, webhook)
  await workers.drain()
  const [delivery] = await db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('webhookId', '=', webhook)
    .execute()
  return delivery?.id ?? assert.fail()
}

const retry = (who: Actor, webhook: string, delivery: string) =>
  who.post(`/admin/webhooks/${webhook}/deliveries/${delivery}/retry`, undefined)
const sendTest = (who: Actor, webhook: string) => who.post(`/admin/webhooks/${webhook}/test`, undefined)
const answersOf = async (who: Actor, webhook: string): Promise<readonly (string | null)[]> => {
  const { status, body, text } = await who.get(`/admin/webhooks/${webhook}/deliveries`)
  assert.equal(status, 200, text)
  return body.data.deliveries.map((one: { response_body: string | null }) => one.response_body)
}

function assertRefused({ status, body, text }: Answer, right: string): void {
  assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], text)
  assert.ok(body.data.details.required_rights.includes(right), text)
}

test('a session that may not read what a webhook sends neither tests nor repeats it, and does not see its answers', async () => {
  const id = await made(NOTES)
  const delivery = await delivered(id)
  const before = receiver.received.length
  assertRefused(await sendTest(blind, id), 'notes.read')
  assertRefused(await retry(blind, id, delivery), 'notes.read')
  assert.equal(await workers.drain(), 0)
  assert.equal(receiver.received.length, before)
  assert.deepEqual(await answersOf(blind, id), [null])

  assert.deepEqual(await answersOf(watcher, id), ['the row that I was sent'])
  assert.equal((await sendTest(watcher, id)).body.data.response_body, 'the row that I was sent')
  assert.equal((await retry(watcher, id, delivery)).status, 200)
  assert.equal(await workers.drain(), 1)
  const [tested] = (await watcher.get(`/admin/webhooks/${id}/deliveries?limit=1`)).body.data.deliveries
  assert.equal((await retry(watcher, id, tested.id)).status, 200, 'an example tells of no table')
  await workers.drain()
})

test('a webhook of accounts is tested and seen by who may list users', async () => {
  const id = await made({ route_key: 'auth_user_created' })
  assertRefused(await sendTest(watcher, id), 'user: list')
  const lister = byBearer(t, await operatorOf(t, 'watcher,lister'))
  assert.equal((await sendTest(lister, id)).status, 200)
  assert.deepEqual(await answersOf(lister, id), ['the row that I was sent'])
  assert.deepEqual(await answersOf(watcher, id), [null])
})

test('no session makes a webhook of others one of its own, to which what waits would be sent', async () => {
  const [ofNotes, ofUsers] = [await made(NOTES), await made({ route_key: 'auth_user_created' })]
  const mine = { table_name: 'orders', url: 'https://thief.example.com/in', headers: null }
  const change = (id: string, body: object) => blind.send('PATCH', `/admin/webhooks/${id}`, { body })
  assertRefused(await change(ofNotes, mine), 'notes.read')
  const ofRows = { ...mine, route_key: 'gateway_insert', client_name: 'default' }
  assertRefused(await change(ofUsers, ofRows), 'user: list')
})
