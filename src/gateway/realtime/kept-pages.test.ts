import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream } from '#test/event-stream.ts'
import { createRoutes } from '#test/public-routes.ts'

/** A route of books, or of words with long keys, whose streams have pages, on a service that takes so many streams of an address. */
async function pagesOf(streams: number, table_name = 'book') {
  const { t, sql, route } = await createRoutes({ config: { limits: { streams_per_address: streams } } })
  const admin = await t.key(['*'])
  const made = await admin.post('/gateway/query', {
    query: 'create table word (id text primary key, title text, is_public boolean default false)',
  })
  assert.equal(made.status, 200, made.text)
  const path = `/management/tables/${table_name}/realtime`
  const enabled = await admin.send('PUT', path, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  const key = await route({
    table_name,
    allowed_ops: ['subscribe'],
    columns: ['id', 'title'],
    conditions: [{ eq_column: 'is_public', eq_value: true }],
    rate_limit: { requests: 10_000, window_seconds: 60 },
  })
  const begun = async (lastId?: string): Promise<EventStream> => {
    const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId }
    const asked = () => openStream(`${t.url}/public/${key}/subscribe`, { method: 'GET', headers })
    let stream = await asked()
    // The service has not noticed yet that others are closed.
    await eventually(async () => {
      if (stream.status !== 200) stream = await asked()
      return stream.status === 200
    })
    await stream.next('ready')
    return stream
  }
  return { sql, begun }
}
const close = async (streams: readonly EventStream[]): Promise<void> => {
  for (const stream of streams) stream.close()
  await Promise.all(streams.map(({ ended }) => ended))
}
const resumes = ({ seen }: EventStream): boolean => seen[0]?.name === 'ready'
const idOf = (stream: EventStream): string => stream.lastId() ?? assert.fail()

test('of one address as many pages are kept as it may have streams', async () => {
  const { begun } = await pagesOf(2)
  const first = [await begun(), await begun()]
  await close(first)
  // Both have a place, so that the others are known to be broken.
  const more = [await begun(), await begun()]
  await close(more)
  const again = await begun(idOf(more[0] ?? assert.fail()))
  assert.ok(!resumes(again))
  await close([again])
  for (const stream of first) assert.ok(resumes(await begun(idOf(stream))))
})

const MANY = {
  'many keys': {
    table: 'book',
    keys: `select n, 'Hidden' from generate_series(1001, 10000) n`,
    last: '20000',
  },
  'long keys': {
    table: 'word',
    // As long as an index takes them, of texts that it cannot compress.
    keys: `select (select string_agg(md5(concat(n, '.', part)), '') from generate_series(1, 60) part), 'Hidden' from generate_series(1, 300) n`,
    last: `'z'`,
  },
}

for (const [what, { table, keys, last }] of Object.entries(MANY))
  test(`pages for which too ${what} have changed are dropped`, async () => {
    const { sql, begun } = await pagesOf(30, table)
    const streams: EventStream[] = []
    while (streams.length < 29) streams.push(await begun())
    await close(streams)
    await sql(`insert into ${table} (id, title) ${keys}`)
    // Those keys are noted when a later change has been told.
    const told = await begun()
    await sql(`insert into ${table} (id, title, is_public) values (${last}, 'Shown', true)`)
    assert.equal(String((await told.next('change')).data.key.id), last.replaceAll("'", ''))
    await close([told])
    let kept = 0
    for (const stream of streams) {
      const again = await begun(idOf(stream))
      if (resumes(again)) kept++
      await close([again])
    }
    assert.ok(kept > 0 && kept < streams.length, `${kept}`)
  })
