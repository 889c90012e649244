import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hiddenName } from '#client/rows/columns.ts'
import { event, followed, READY, streamOf } from './followed-page.ts'

test('each further failure waits longer, to half a minute', async (t) => {
  const page = followed(t, () => assert.fail('no network'))
  await page.pass(80_000)
  assert.deepEqual(page.waits(), [1_500, 3_000, 6_000, 12_000, 22_500, 22_500])
  assert.deepEqual(new Set(page.statuses()), new Set(['loading', 'loading network']))
})

test('a stream that was whole begins with short waits again, of the time that the service wants', async (t) => {
  const page = followed(t, (signal) => {
    const { response, send, end } = streamOf(signal)
    send(`retry: 4000\n\n${READY}`)
    end()
    return response
  })
  await page.pass(10_000)
  assert.deepEqual(page.waits(), [3_000, 3_000, 3_000])
  assert.deepEqual(page.statuses().slice(0, 4), ['loading', 'live', 'stale network', 'live'])
})

test('the service may say how long to wait, and a proxy in front of it does not end the stream', async (t) => {
  const answers = [
    new Response('<h1>Bad gateway</h1>', { status: 404 }),
    Response.json(
      { status: 'error', code: 'too_many_streams', message: 'There are too many streams' },
      { status: 429, headers: { 'retry-after': '7' } },
    ),
  ]
  const page = followed(t, (signal) => answers.shift() ?? streamOf(signal).response)
  await page.pass(20_000)
  assert.deepEqual(page.waits(), [1_500, 10_000])
  assert.deepEqual(page.statuses(), ['loading', 'loading network', 'loading too_many_streams'])
})

test('a connection that is silent for 40 seconds is left, and resumed', async (t) => {
  const streams: ReturnType<typeof streamOf>[] = []
  const page = followed(t, (signal) => {
    const stream = streamOf(signal)
    streams.push(stream)
    return stream.response
  })
  await page.settle()
  streams[0]?.send(READY)
  await page.pass(30_000)
  streams[0]?.send(':\nid: b\n\n')
  await page.pass(39_000)
  assert.equal(page.asked.length, 1)
  await page.pass(3_000)
  assert.equal(page.asked.length, 2)
  assert.equal(page.asked[1]?.headers.get('last-event-id'), 'b')
  streams[1]?.send(event('ready', { position: 'b' }, 'b'))
  await page.settle()
  assert.deepEqual(page.statuses(), ['loading', 'live', 'stale network', 'live'])
  assert.deepEqual(page.states.at(-1)?.rows, [{ id: 1 }])
})

test('a stream that is behind is stale, until nothing says so for 20 seconds', async (t) => {
  let stream: ReturnType<typeof streamOf> | undefined
  const page = followed(t, (signal) => {
    stream = streamOf(signal)
    return stream.response
  })
  await page.settle()
  stream?.send(READY)
  await page.settle()
  stream?.send(event('behind', { seconds: 6 }))
  await page.pass(15_000)
  stream?.send(event('behind', { seconds: 20 }))
  await page.pass(19_500)
  assert.equal(page.states.at(-1)?.status, 'stale')
  await page.pass(1_000)
  assert.equal(page.states.at(-1)?.status, 'live')
})

test('a break in the middle of a new snapshot leaves the rows, and begins it again', async (t) => {
  const streams: ReturnType<typeof streamOf>[] = []
  const page = followed(t, (signal) => {
    const stream = streamOf(signal)
    streams.push(stream)
    return stream.response
  })
  await page.settle()
  streams[0]?.send(READY)
  streams[0]?.send(
    event('reset', { reason: 'policy_changed' }) + event('snapshot', { table: 'order', rows: [{ id: 2 }] }),
  )
  streams[0]?.end()
  await page.pass(2_000)
  assert.equal(page.asked[1]?.headers.get('last-event-id'), null)
  streams[1]?.send(
    event('snapshot', { table: 'order', rows: [{ id: 3 }] }) + event('ready', { position: 'c' }, 'c'),
  )
  await page.settle()
  assert.deepEqual(
    page.states.map(({ rows }) => rows),
    [[], [{ id: 1 }], [{ id: 1 }], [{ id: 1 }], [{ id: 3 }]],
  )
})

test('columns that are read for the key alone are never shown, also when the table changes', async (t) => {
  const streams: ReturnType<typeof streamOf>[] = []
  const page = followed(
    t,
    (signal) => {
      const stream = streamOf(signal)
      streams.push(stream)
      return stream.response
    },
    { columns: ['n'] },
  )
  const snapshot = (row: object) =>
    event('snapshot', { table: 'order', rows: [row] }) + event('ready', {}, 'a')
  const change = event('change', { table: 'order', op: 'update', key: { id: 1 }, row: { n: 2 } })
  await page.settle()
  streams[0]?.send(snapshot({ n: 1 }) + change + change)
  await page.settle()
  streams[1]?.send(snapshot({ n: 2, [hiddenName(0)]: 1 }))
  streams[1]?.send(
    event('change', { table: 'order', op: 'update', key: { id: 1 }, row: { n: 3, [hiddenName(0)]: 1 } }),
  )
  await page.settle()
  streams[1]?.send(event('reset', { reason: 'table_changed' }) + snapshot({ n: 3, [hiddenName(0)]: 1 }))
  await page.settle()
  streams[2]?.send(snapshot({ n: 3 }))
  await page.settle()
  assert.deepEqual(
    new Set(page.states.map(({ rows }) => JSON.stringify(rows))),
    new Set(['[]', '[{"n":1}]', '[{"n":2}]', '[{"n":3}]']),
  )
  assert.equal(page.asked.length, 3)
  assert.equal(page.states.at(-1)?.status, 'live')
})

test('more rows than a stream may have end it', async (t) => {
  const page = followed(t, (signal) => {
    const { response, send, end } = streamOf(signal)
    send(event('reset', { reason: 'too_many' }))
    end()
    return response
  })
  await page.pass(60_000)
  assert.equal(page.asked.length, 1)
  assert.deepEqual(page.states.at(-1)?.error?.details, { reason: 'too_many' })
  assert.equal(page.statuses().at(-1), 'stale stream_ended')
})

test('in a browser the network that is back is used at once', async (t) => {
  const browser = new EventTarget()
  const listening = {
    ononline: null,
    addEventListener: browser.addEventListener.bind(browser),
    removeEventListener: browser.removeEventListener.bind(browser),
  }
  Object.assign(globalThis, listening)
  const page = followed(t, () => assert.fail('no network'))
  t.after(() => {
    for (const name of Object.keys(listening)) Reflect.deleteProperty(globalThis, name)
  })
  await page.pass(8_000)
  assert.equal(page.asked.length, 3)
  browser.dispatchEvent(new Event('online'))
  await page.settle()
  assert.equal(page.asked.length, 4)
  page.close()
  browser.dispatchEvent(new Event('online'))
  await page.settle()
  assert.equal(page.asked.length, 4)
})
