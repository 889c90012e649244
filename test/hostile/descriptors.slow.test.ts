import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { actor } from '#test/harness.ts'
import { startReceiver } from '#test/webhooks.ts'
import { createTemporaryHome, startProgram } from '../journeys/program.ts'

const FILES = 256

test(`with ${FILES} open files and 600 silent connections of strangers, callers are answered and no event is lost`, async (t) => {
  const home = await createTemporaryHome()
  const { url: target, received } = await startReceiver()
  const program = await startProgram(
    home.folder,
    { SERVICE_OUTBOUND__ALLOW_HTTP: 'true', SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8' },
    ['/bin/sh', '-c', `ulimit -n ${FILES}; exec "$0" "$@"`],
  )
  const sockets: Socket[] = []
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await program.end('SIGKILL')
    await home.remove()
  })
  const adminKey = (await readFile(path.join(home.folder, 'data/admin-key'), 'utf8')).trim()
  const admin = actor(program.url, { apikey: adminKey, 'x-service-client': 'default' })
  const ok = async (asked: ReturnType<typeof admin.post>) => {
    const answer = await asked
    assert.ok(answer.status < 300, answer.text)
    assert.equal(answer.headers.get('x-service-events'), null)
  }
  await ok(admin.post('/gateway/query', { query: 'create table note (id int primary key)' }))
  await ok(admin.post('/admin/webhooks', { url: target, route_key: 'gateway_insert' }))
  for (let made = 0; made < 600; made++) {
    const socket = connect({ port: Number(new URL(program.url).port), host: '127.0.0.1' })
    sockets.push(socket.on('error', () => {}))
    await once(socket, 'connect')
  }
  const inserts = Array.from({ length: 100 }, (_, id) => id)
  const insert = (id: number) => admin.post('/gateway/insert', { table_name: 'note', insert_body: { id } })
  for (const id of inserts) {
    let answer = await insert(id)
    // A connection did not open within five seconds on a busy machine. Were it for the files, the log would say so.
    while (answer.body.code === 'client_unavailable') answer = await insert(id)
    await ok(Promise.resolve(answer))
  }
  await eventually(() => new Set(received.map(({ id }) => id)).size === inserts.length)
  assert.doesNotMatch(program.output(), /EMFILE|"level":"error"/)
})
