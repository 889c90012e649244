import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { openStream } from '#test/event-stream.ts'
import { testService } from '#test/harness.ts'

const t = await testService({ config: { server: { trusted_proxies: ['127.0.0.0/8'] } } })
const key = await t.key(['gateway.*', 'management.*'])
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
// More than the buffers of the system hold.
await sql(`create table large (id int primary key, text text); create table small (id int primary key);
  insert into large select n, repeat('x', 2000) from generate_series(1, 4000) n`)
for (const table of ['large', 'small']) {
  const enabled = await key.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
}
const DEAF = 16

/** Asks for a stream, and reads its first bytes only. */
async function openDeaf(address: string): Promise<Socket> {
  const { hostname, port } = new URL(t.url)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', () => {})
  const body = JSON.stringify({ tables: [{ table_name: 'large' }] })
  const more = { host: 'x', 'content-type': 'application/json', 'x-forwarded-for': address }
  const lines = Object.entries({ ...more, ...key.headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /realtime HTTP/1.1\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`)
  const [first] = await once(socket, 'data')
  assert.match(String(first), /200 OK/)
  return socket.pause()
}

/** Readings of the large table: one when a stream is asked for, and one when its snapshot begins. */
const readings = (): number =>
  t.service.kernel.metrics
    .figures()
    .statements.keys.filter(({ key }) => key.includes('large'))
    .reduce((sum, { count }) => sum + count, 0)

test('readers that take nothing hold up the beginnings of their own address only', async () => {
  const deaf = await Promise.all(Array.from({ length: DEAF }, () => openDeaf('198.51.100.1')))
  const other = await openStream(`${t.url}/realtime`, {
    headers: { ...key.headers, 'x-forwarded-for': '198.51.100.2' },
    body: { tables: [{ table_name: 'small' }] },
  })
  await other.next('ready')
  assert.ok(readings() < 2 * DEAF, 'some of them have not begun yet')
  for (const socket of deaf) socket.destroy()
  other.close()
})
