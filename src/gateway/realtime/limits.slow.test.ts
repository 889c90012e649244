import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { testService } from '#test/harness.ts'

const t = await testService({
  config: { limits: { streams: 6, streams_per_caller: 2, streams_per_address: 4, stream_buffer: 131_072 } },
})
const admin = await t.key(['gateway.*', 'management.*'])
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
await sql('create table note (id int primary key, body text)')
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)
const TABLES = { tables: [{ table_name: 'note' }] }
const follow = (headers: Readonly<Record<string, string>>) =>
  openStream(`${t.url}/realtime`, { headers, body: TABLES })

const openStreams = async () =>
  Number(/^gatehouse_live_streams (\d+)/m.exec((await t.admin.get('/metrics')).text)?.[1])

test('a key and an address have a bounded number of streams, which closed ones do not count for', async () => {
  const keys = [await t.key(['note.read']), await t.key(['note.read']), await t.key(['note.read'])]
  const [one, two, three] = keys.map(({ headers }) => headers)
  const refusal = async (headers = {}) => {
    const { status, body } = await t.anon.post('/realtime', TABLES, { headers })
    return [status, body.code, body.data.details.setting]
  }
  const streams = [await follow(one ?? {}), await follow(one ?? {})]
  assert.deepEqual(await refusal(one), [429, 'too_many_streams', 'limits.streams_per_caller'])
  streams.push(await follow(two ?? {}), await follow(two ?? {}))
  assert.deepEqual(await refusal(three), [429, 'too_many_streams', 'limits.streams_per_address'])
  for (const stream of streams) await stream.next('ready')
  for (const stream of streams) stream.close()
  await eventually(async () => {
    const stream = await follow(one ?? {})
    stream.close()
    return stream.status === 200
  })
})

test('a reader that takes nothing loses its stream, and holds no other one', async () => {
  const other = await follow(admin.headers)
  await other.next('ready')
  const { hostname, port } = new URL(t.url)
  const socket = connect({ host: hostname, port: Number(port) })
  const body = JSON.stringify(TABLES)
  const more = { host: 'x', connection: 'close', 'content-type': 'application/json' }
  const headers = Object.entries({ ...more, ...admin.headers })
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`POST /realtime HTTP/1.1\r\n${lines}content-length: ${body.length}\r\n\r\n${body}`)
  const first = await new Promise<Buffer>((resolve) => void socket.once('data', resolve))
  assert.match(first.toString(), /200 OK/)
  socket.pause()
  socket.on('error', () => {})
  // More than the buffers of the system hold.
  for (let round = 1; round <= 3; round++) {
    await sql(`insert into note select n, repeat('x', 400000) from generate_series(1, 20) n`)
    for (let told = 0; told < 20; told++) await other.next('change')
    await sql('delete from note')
    for (let told = 0; told < 20; told++) await other.next('leave')
  }
  await eventually(async () => (await openStreams()) === 1)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  await closed
  other.close()
})

test('a reader that falls behind is told the rows as they are when it takes them', async () => {
  const [quick, slow] = [await follow(admin.headers), await follow(admin.headers)]
  for (const stream of [quick, slow]) await stream.next('ready')
  // So that both are of one cohort.
  for (let id = 1; id <= 3; id++) {
    await sql(`insert into note values (${id}, 'first')`)
    for (const stream of [quick, slow]) await stream.next('change')
  }
  const goOn = slow.hold()
  for (const letter of ['x', 'y', 'z']) {
    await sql(`insert into note select n, repeat('${letter}', 1000000) from generate_series(1, 10) n
      on conflict (id) do update set body = excluded.body`)
    for (let told = 0; told < 10; told++) await quick.next('change')
  }
  await sql('delete from note where id > 5')
  goOn()
  const { rows } = await sql('select * from note order by id')
  const shown = (stream: EventStream) =>
    JSON.stringify([...pageOf(stream, 'note').values()].toSorted((one, other) => one.id - other.id))
  for (const stream of [quick, slow]) await eventually(() => shown(stream) === JSON.stringify(rows))
  assert.ok(slow.seen.length < quick.seen.length)
  assert.ok(!slow.seen.some(({ name }) => name === 'reset'))
  for (const stream of [quick, slow]) stream.close()
  await sql('delete from note')
})

test('a service that stops ends its streams', async () => {
  const stream = await follow(admin.headers)
  await stream.next('ready')
  const stopped = t.stop()
  assert.deepEqual((await stream.next('end')).data, { reason: 'shutting_down' })
  await stream.ended
  await stopped
})
