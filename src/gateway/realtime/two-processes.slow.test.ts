import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { controlDatabase, type TestService, testService } from '#test/harness.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const controlUrl = await controlDatabase()
const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (one) => (await one.query(text)).rows)

/** A process, with the statements of its own that the database has answered. */
async function startProcess() {
  let answers = 0
  const proxy = await startProxy(database.url, { onAnswer: () => void answers++ })
  const t = await testService({ controlUrl, config: { clients: { far: { url: proxy.url } } } })
  return { t, proxy, answers: () => answers }
}
const [older, younger] = [await startProcess(), await startProcess()]
after(async () => {
  for (const { t, proxy } of [older, younger]) {
    await t.stop()
    await proxy.close()
  }
  await database.drop()
})
const key = await older.t.key(['management.*', 'gateway.*'], { client_name: 'far' })
const headers = { ...key.headers, 'x-service-client': 'far' }
await sql('create table note (id int primary key, text text)')
const path = '/management/tables/note/realtime'
const enabled = await key.send('PUT', path, { body: { enabled: true }, headers })
assert.equal(enabled.status, 200, enabled.text)

async function follow({ url }: TestService): Promise<EventStream> {
  const stream = await openStream(`${url}/realtime`, { headers, body: { tables: [{ table_name: 'note' }] } })
  await stream.next('ready')
  return stream
}
const inOrder = (rows: Iterable<object>): string =>
  JSON.stringify(
    [...rows].toSorted((one, other) => (one as { id: number }).id - (other as { id: number }).id),
  )
const shows = (stream: EventStream, rows: readonly object[]): boolean =>
  inOrder(pageOf(stream, 'note').values()) === inOrder(rows)

/** Statements of the one process in the time of several of the other one. */
async function statementsBeside(one: { answers(): number }, other: { answers(): number }): Promise<number> {
  const [before, end] = [one.answers(), other.answers() + 6]
  await eventually(() => other.answers() >= end)
  return one.answers() - before
}

test('of two processes with streams of one database, the older one looks for changes, and both tell them', async () => {
  const streams = [await follow(older.t), await follow(younger.t)]
  await eventually(async () => (await statementsBeside(younger, older)) <= 1)
  for (let id = 1; id <= 30; id++)
    await sql(
      `insert into note values (${id}, 'new'); update note set text = 'seen ${id}' where id % 3 = 0; delete from note where id = ${id - 5}`,
    )
  const written = await younger.t.anon.send('PUT', '/gateway/insert', {
    headers,
    body: { table_name: 'note', insert_body: { id: 99, text: 'through the younger one' } },
  })
  assert.equal(written.status, 200, written.text)
  const rows = await sql('select id, text from note')
  for (const stream of streams) {
    await eventually(() => shows(stream, rows))
    assert.ok(!stream.seen.some(({ name }) => name === 'reset'))
    stream.close()
  }
})

test('when the process that looks has its last stream closed, the other one looks', async () => {
  const [first, second] = [await follow(older.t), await follow(younger.t)]
  await eventually(async () => (await statementsBeside(younger, older)) <= 1)
  first.close()
  await sql(`insert into note values (200, 'later')`)
  assert.equal((await second.next('change')).data.key.id, 200)
  await eventually(async () => (await statementsBeside(older, younger)) === 0)
  second.close()
})

test('a process that reads nothing more is replaced, and reads all of it later', async () => {
  const [first, second] = [await follow(older.t), await follow(younger.t)]
  await eventually(async () => (await statementsBeside(younger, older)) <= 1)
  older.proxy.freeze()
  await sql(`insert into note values (300, 'unread by one'); delete from note where id < 20`)
  const rows = await sql('select id, text from note')
  await eventually(() => shows(second, rows))
  await older.proxy.mend()
  await eventually(() => shows(first, rows))
  for (const stream of [first, second]) stream.close()
})

test('a process whose control database is lost tells everything when it is back, and the other one meanwhile', async () => {
  const third = await startProxy(controlUrl)
  const t = await testService({ controlUrl: third.url, config: { clients: { far: { url: database.url } } } })
  const [first, last] = [await follow(older.t), await follow(t)]
  await third.cut()
  await sql(`insert into note values (400, 'unheard')`)
  assert.equal((await first.next('change')).data.key.id, 400)
  await third.mend()
  const rows = await sql('select id, text from note')
  await eventually(() => shows(last, rows))
  for (const stream of [first, last]) stream.close()
  await t.stop()
  await third.close()
})
