import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { openStream } from '#test/event-stream.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const admin = await t.key(['gateway.*', 'management.*'])
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
const ASKED = { tables: [{ table_name: 'note' }] }

before(async () => {
  await sql(`create table note (id int primary key); insert into note values (1);
    create table room (id bigint primary key, amount numeric);
    insert into room values (9007199254740992, 1), (9007199254740993, 2)`)
  for (const table of ['note', 'room']) {
    const path = `/management/tables/${table}/realtime`
    const enabled = await admin.send('PUT', path, { body: { enabled: true } })
    assert.equal(enabled.status, 200, enabled.text)
  }
})

const ticketOf = async (who = admin): Promise<string> => {
  const answer = await who.post('/realtime/tickets', ASKED)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.ticket
}
const open = (ticket: string, headers: Record<string, string> = {}) =>
  openStream(`${t.url}/realtime?ticket=${ticket}`, { method: 'GET', headers })
const refusal = async (ticket: string, headers: Record<string, string> = {}) => {
  const { status, body } = await t.anon.get(`/realtime?ticket=${ticket}`, { headers })
  return [status, body.code]
}
const INVALID = [401, 'invalid_ticket']

test('a ticket opens the stream of its caller once, without any other header', async () => {
  const ticket = await ticketOf()
  const stream = await open(ticket, {
    apikey: 'svc_of.another',
    'x-service-client': 'nowhere',
    cookie: 'x=y',
  })
  assert.deepEqual((await stream.next()).data, { table: 'note', rows: [{ id: 1 }] })
  await stream.next('ready')
  await sql('insert into note values (2)')
  assert.deepEqual((await stream.next('change')).data.key, { id: 2 })
  assert.deepEqual(await refusal(ticket), INVALID)
  stream.close()
  assert.deepEqual(await refusal(ticket), INVALID)
})

test('of many who redeem a ticket at the same time, one gets the stream', async () => {
  const ticket = await ticketOf()
  const streams = await Promise.all(Array.from({ length: 8 }, () => open(ticket)))
  assert.deepEqual(streams.map(({ status }) => status).toSorted(), [200, ...Array(7).fill(401)])
  for (const stream of streams) stream.close()
})

test('it counts again with the id of an event of its stream, while its caller may still read', async () => {
  const key = await t.key(['note.read'])
  const ticket = await ticketOf(key)
  const stream = await open(ticket)
  await stream.next('ready')
  const id = stream.lastId() ?? assert.fail()
  stream.close()
  const foreign = await open(await ticketOf(key))
  await foreign.next('ready')
  const foreignId = foreign.lastId() ?? assert.fail()
  foreign.close()
  for (const guess of ['0', foreignId, id.slice(1), `x${id.slice(1)}`])
    assert.deepEqual(await refusal(ticket, { 'last-event-id': guess }), INVALID, guess)

  await sql('insert into note values (3)')
  for (let round = 0; round < 2; round++) {
    const again = await open(ticket, { 'last-event-id': id })
    assert.equal((await again.next()).name, 'ready')
    assert.deepEqual((await again.next('change')).data.key, { id: 3 })
    again.close()
  }
  const removed = await t.admin.send('DELETE', `/admin/api-keys/${key.keyId}`)
  assert.equal(removed.status, 200, removed.text)
  assert.deepEqual(await refusal(ticket, { 'last-event-id': id }), [401, 'invalid_api_key'])
})

test('it has to be used within 30 seconds, and again within a day', async () => {
  const [late, used] = [await ticketOf(), await ticketOf()]
  const stream = await open(used)
  await stream.next('ready')
  const id = stream.lastId() ?? assert.fail()
  stream.close()
  t.advance(30_000)
  assert.deepEqual(await refusal(late), INVALID)
  t.advance(86_000_000)
  const again = await open(used, { 'last-event-id': id })
  assert.equal(again.status, 200)
  again.close()
  t.advance(86_400_000)
  assert.deepEqual(await refusal(used, { 'last-event-id': id }), INVALID)
  const prune = t.service.recurring.find(({ name }) => name === 'prune-realtime-tickets')
  await prune?.run()
  const { rows } = await withClient(t.controlUrl, (client) =>
    client.query("select from service.realtime_ticket where expires_at < now() + interval '1 day'"),
  )
  assert.equal(rows.length, 0)
})

test('a ticket is refused to a caller who would get no stream, and is in no log', async () => {
  const nothing = await t.key(['other.read'])
  const { status, body } = await nothing.post('/realtime/tickets', ASKED)
  assert.deepEqual([status, body.code], [403, 'insufficient_rights'])
  const notLive = await admin.post('/realtime/tickets', { tables: [{ table_name: 'nowhere' }] })
  assert.deepEqual([notLive.status, notLive.body.code], [404, 'table_not_found'])
  const ticket = await ticketOf()
  const stream = await open(ticket)
  await stream.next('ready')
  stream.close()
  assert.deepEqual(await refusal(ticket), INVALID)
  assert.ok(!t.log.some((line) => line.includes(ticket)))
  for (const missing of ['', 'x'.repeat(43), `${ticket}x`]) assert.deepEqual(await refusal(missing), INVALID)
})

test('numbers of its conditions keep all digits', async () => {
  const conditions = { eq_column: 'id', eq_value: JSON.rawJSON('9007199254740993') }
  const tables = [{ table_name: 'room', columns: ['amount'], conditions }]
  const answer = await admin.post('/realtime/tickets', { tables })
  assert.equal(answer.status, 200, answer.text)
  const stream = await open(answer.body.data.ticket)
  assert.deepEqual((await stream.next('snapshot')).data.rows, [{ amount: 2 }])
  stream.close()
})
