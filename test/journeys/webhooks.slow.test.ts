import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { ADMIN_KEY, actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { startReceiver, verified } from '#test/webhooks.ts'
import { createTemporaryHome, type Program, startProgram } from './program.ts'

const TEN_MEGABYTES = Buffer.alloc(10_000_000, 'x')

/** Answers of endpoints that fail or are slow, by name. */
const BAD: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  slow: (response) => sleep(300).then(() => response.writeHead(204).end()),
  refusing: (response) => response.socket?.resetAndDestroy(),
  redirecting: (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  hanging: () => {},
  failing: (response) => response.writeHead(500).end(),
  large: (response) => response.writeHead(200).end(TEN_MEGABYTES),
}
/** Endpoints that accept every event in the end. */
const ACCEPTING = ['slow', 'large']

const OPERATIONS_A_SECOND = 40
const PHASE = 4_000

test('no event of an answered operation is lost when processes are killed, and bad endpoints do not delay good ones', async (t) => {
  const controlUrl = await controlDatabase()
  const client = await testDatabase()
  await withClient(client.url, (db) =>
    db.query('create table visit (id bigint generated always as identity primary key, page text)'),
  )
  const home = await createTemporaryHome()
  t.after(home.remove)
  const start = () =>
    startProgram(home.folder, {
      DATABASE_URL: controlUrl,
      SERVICE_CLIENTS__DEFAULT__URL: client.url,
      SERVICE_SECRET: TEST_SECRET,
      SERVICE_KEY_12: ADMIN_KEY,
      SERVICE_OUTBOUND__ALLOW_HTTP: 'true',
      SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.1',
    })
  const programs: Program[] = [await start(), await start()]
  t.after(() => Promise.all(programs.map((program) => program.end('SIGTERM'))))
  const admin = () => actor(programs[0]?.url ?? '', { apikey: ADMIN_KEY, 'x-service-client': 'default' })

  const add = async (url: string): Promise<{ id: string; secret: string }> => {
    const body = { route_key: 'gateway_insert', url, timeout_ms: 4_000 }
    const answer = await admin().post('/admin/webhooks', body)
    assert.equal(answer.status, 201, answer.text)
    return answer.body.data
  }
  /** By request: when the event first arrived. */
  const arrivals = { first: new Map<string, number>(), second: new Map<string, number>() }
  for (const seen of Object.values(arrivals)) {
    const { url } = await startReceiver((response, event) => {
      const { request_id: requestId } = verified(secret, event) as { request_id: string }
      if (!seen.has(requestId)) seen.set(requestId, performance.now())
      response.writeHead(204).end()
    })
    const { secret } = await add(url)
  }

  const answered = new Map<string, { ended: number; phase: string }>()
  let unanswered = 0
  /** Inserts at a steady rate, at either process; remembers the operations that were answered. */
  const load = async (phase: string, milliseconds: number): Promise<void> => {
    const running: Promise<void>[] = []
    const end = performance.now() + milliseconds
    for (let number = 0; performance.now() < end; number++) {
      running.push(insert(phase, `${phase}-${number}`))
      await sleep(1_000 / OPERATIONS_A_SECOND)
    }
    await Promise.all(running)
  }
  const insert = async (phase: string, requestId: string): Promise<void> => {
    const { url } = programs[Math.floor(Math.random() * programs.length)] ?? { url: '' }
    try {
      const answer = await actor(url, { apikey: ADMIN_KEY, 'x-service-client': 'default' }).send(
        'PUT',
        '/gateway/insert',
        {
          body: { table_name: 'visit', insert_body: { page: requestId } },
          headers: { 'x-request-id': requestId, connection: 'close' },
        },
      )
      assert.deepEqual([answer.status, answer.headers.get('x-service-events')], [200, null], answer.text)
      answered.set(requestId, { ended: performance.now(), phase })
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      // The process was killed before it had answered.
      unanswered++
    }
  }

  await load('warm-up', 1_500)
  await load('alone', PHASE)
  const bad: Record<string, { id: string; seen: Set<string> }> = {}
  for (const [name, answer] of Object.entries(BAD)) {
    const seen = new Set<string>()
    const { url } = await startReceiver((response, event) => {
      seen.add(JSON.parse(event.body).request_id)
      answer(response)
    })
    bad[name] = { id: (await add(url)).id, seen }
  }
  await load('settling', 3_000)
  await load('beside', PHASE)

  let kills = 0
  const killing = (async () => {
    for (const end = performance.now() + 3 * PHASE; performance.now() < end || kills < 3; ) {
      await sleep(300 + Math.random() * 2_000)
      const index = Math.floor(Math.random() * programs.length)
      await programs[index]?.end('SIGKILL')
      kills++
      programs[index] = await start()
    }
  })()
  await Promise.all([load('killed', 3 * PHASE), killing])

  const expected = [...answered.keys()]
  const missing = (seen: { has(id: string): boolean }, phases?: readonly string[]) =>
    expected.filter((id) => !seen.has(id) && (phases?.includes(answered.get(id)?.phase ?? '') ?? true))
  const afterBad = ['beside', 'killed']
  const left = () => [
    ...Object.values(arrivals).flatMap((seen) => missing(seen)),
    ...Object.keys(bad).flatMap((name) =>
      missing(bad[name]?.seen ?? new Set(), ACCEPTING.includes(name) ? afterBad : []),
    ),
  ]
  for (const deadline = Date.now() + 45_000; left().length > 0 && Date.now() < deadline; ) await sleep(100)
  assert.deepEqual(left(), [])

  // Deliveries that bad endpoints have not accepted are in the outbox.
  const rows = await withClient(controlUrl, (db) =>
    db.query<{ webhook: string; request: string }>(
      `select d.webhook_id as webhook, e.body::json ->> 'request_id' as request
       from service.webhook_delivery d join service.webhook_event e on e.id = d.event_id`,
    ),
  )
  for (const [name, { id }] of Object.entries(bad)) {
    const written = new Set(rows.rows.filter(({ webhook }) => webhook === id).map(({ request }) => request))
    assert.deepEqual(missing(written, afterBad), [], name)
  }

  /** Milliseconds from the answer to the operation until its event has arrived, sorted. */
  const delays = (phase: string): number[] =>
    expected
      .flatMap((id) => {
        const { ended, phase: own } = answered.get(id) ?? { ended: 0 }
        return own === phase
          ? Object.values(arrivals).map((seen) => (seen.get(id) ?? Number.NaN) - ended)
          : []
      })
      .sort((one, other) => one - other)
  const at = (share: number, phase: string): number => {
    const all = delays(phase)
    return Math.max(0, all[Math.floor(all.length * share)] ?? Number.NaN)
  }
  const figures = ['alone', 'beside', 'killed']
    .map((phase) => `${phase}: p50 ${at(0.5, phase).toFixed(0)} ms, p99 ${at(0.99, phase).toFixed(0)} ms`)
    .join('; ')
  t.diagnostic(
    `${expected.length} answered, ${unanswered} cut off by ${kills} kills; from answer to receipt ${figures}`,
  )
  // Less than the timeout of one silent request.
  assert.ok(at(0.99, 'beside') < Math.max(4 * at(0.99, 'alone'), 3_500), figures)
})
