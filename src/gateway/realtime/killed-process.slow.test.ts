import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { ADMIN_KEY, actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

const ROUNDS = 8

/** The process that looks for changes is killed while writers write, and comes back as the younger one. */
test('when the process that reads is killed, streams of the other one and resumed ones have no gap', async (t) => {
  const homes = [await createTemporaryHome(), await createTemporaryHome()]
  for (const home of homes) t.after(home.remove)
  const [database, logging] = [await testDatabase(), await testDatabase()]
  const sql = (text: string) =>
    withClient(database.url, async (client) => (await client.query(text)).rows as { id: number }[])
  await sql('create table note (id int primary key, n int)')
  const env = {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_CLIENTS__DEFAULT__URL: database.url,
    SERVICE_CLIENTS__LOGGING__URL: logging.url,
  }
  const start = (index: number) => startProgram(homes[index % 2]?.folder ?? assert.fail(), env)
  let [first, second] = [await start(0), await start(1)]
  t.after(() => Promise.all([first, second].map((program) => program.end('SIGKILL'))))
  const admin = actor(first.url, { apikey: ADMIN_KEY, 'x-service-client': 'default' })
  const made = await admin.post('/admin/api-keys', {
    ...{ name: 'live', client_name: 'default', rights: ['gateway.*', 'management.*'] },
  })
  assert.ok(made.status < 300, made.text)
  const headers = { apikey: made.body.data.api_key, 'x-service-client': 'default' }
  const key = actor(first.url, headers)
  const enabled = await key.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  const follow = (url: string, lastId?: string) =>
    openStream(`${url}/realtime`, {
      headers: { ...headers, ...(lastId !== undefined && { 'last-event-id': lastId }) },
      body: { tables: [{ table_name: 'note' }] },
    })
  const shown = (...streams: EventStream[]) => {
    const rows = pageOf({ ...streams[0], seen: streams.flatMap(({ seen }) => seen) } as EventStream, 'note')
    return JSON.stringify([...rows.values()].toSorted((one, other) => one.id - other.id))
  }

  for (let round = 1; round <= ROUNDS; round++) {
    const [doomed, stays] = [await follow(first.url), await follow(second.url)]
    for (const stream of [doomed, stays]) await stream.next('ready')
    let isWriting = true
    const write = async (from: number): Promise<void> => {
      for (let n = 0; isWriting; n++)
        await sql(
          `insert into note values (${from + (n % 40)}, ${n}) on conflict (id) do update set n = ${n}; delete from note where id = ${from + ((n * 7) % 40)}`,
        )
    }
    const writing = [write(0), write(100), write(200)]
    await doomed.next('change')
    await sleep(round * 137)
    await first.end('SIGKILL')
    await doomed.ended
    const resumed = await follow(second.url, doomed.lastId())
    await resumed.next('ready')
    isWriting = false
    await Promise.all(writing)
    await sql(`insert into note values (${1_000 + round}, 0)`)
    const rows = JSON.stringify(await sql('select id, n from note order by id'))
    for (const streams of [[stays], [doomed, resumed]])
      await eventually(() => shown(...streams) === rows).catch(() => assert.equal(shown(...streams), rows))
    for (const stream of [stays, resumed])
      stream.close()
      // The survivor is the older one now.
    ;[first, second] = [second, await start(round + 1)]
  }
})
