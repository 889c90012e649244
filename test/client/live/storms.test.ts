import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import { createClient } from '#client/client.ts'
import type { LiveState } from '#client/live/open-live.ts'
import { event, followed, READY, streamOf } from './followed-page.ts'

type Stream = ReturnType<typeof streamOf>

/** A page whose connections are streams, in order. */
function streamed(t: TestContext, options: Parameters<typeof followed>[2] = {}) {
  const streams: Stream[] = []
  const signals: AbortSignal[] = []
  const page = followed(
    t,
    (signal) => {
      const stream = streamOf(signal)
      streams.push(stream)
      signals.push(signal)
      return stream.response
    },
    options,
  )
  return {
    ...page,
    signals,
    send: (text: string) => streams.at(-1)?.send(text),
    end: () => streams.at(-1)?.end(),
  }
}
const snapshot = (...rows: readonly object[]) => event('snapshot', { table: 'order', rows })
const change = (key: object, row?: object) =>
  event(row === undefined ? 'leave' : 'change', { table: 'order', key, ...(row && { row }) })

test('of a storm of resets the rows of the last whole snapshot are shown, and no part of any', async (t) => {
  const page = streamed(t)
  await page.settle()
  page.send(READY)
  await page.settle()
  for (let storm = 0; storm < 30; storm++) {
    page.send(event('reset', { reason: 'policy_changed' }) + snapshot({ id: storm }, { id: storm + 1 }))
    if (storm % 2 === 0) page.send(snapshot({ id: 99 }))
    if (storm % 5 === 0)
      page.send(event('ready', {}, `${storm}`) + change({ id: storm }, { id: storm, n: 1 }))
    if (storm % 4 === 0) await page.settle()
  }
  page.send(event('reset', { reason: 'rights_changed' }) + event('ready', {}, 'z'))
  await page.settle()
  assert.deepEqual(page.states.at(-1), { rows: [], status: 'live', error: undefined })
  for (const { rows } of page.states) assert.ok(rows.length <= 3, JSON.stringify(rows))
  assert.equal(page.asked.length, 1)
})

test('a page that is closed while it loads hears nothing more, and leaves its connection', async (t) => {
  for (const part of ['', 'retry: 10\n\n', snapshot({ id: 1 }), snapshot({ id: 1 }).slice(0, 40)])
    await t.test(`after ${JSON.stringify(part)}`, async (t) => {
      const page = streamed(t)
      await page.settle()
      page.send(part)
      await page.settle()
      page.close()
      assert.ok(page.signals[0]?.aborted)
      await page.pass(60_000)
      assert.deepEqual([page.statuses(), page.asked.length], [['loading'], 1])
    })
})

test('a page that is closed while its session is asked for sends nothing', async (t) => {
  let give = (_token: string): void => {}
  const session = () => new Promise<string>((resolve) => (give = resolve))
  const page = streamed(t, { client: { session } })
  await page.settle()
  page.close()
  give('token')
  await page.pass(60_000)
  assert.equal(page.signals.filter(({ aborted }) => !aborted).length, 0)
  assert.deepEqual(page.statuses(), ['loading'])
})

test('two lives of one read are two, and one ends without the other', async (context) => {
  const open: Stream[] = []
  const db = createClient({
    url: 'http://service',
    fetch: async (_, init) => {
      const stream = streamOf(init?.signal ?? assert.fail())
      open.push(stream)
      return stream.response
    },
  })
  const read = db.from('order').select()
  const states: LiveState<unknown>[][] = [[], []]
  const closes = states.map((told) => read.live((state) => void told.push(state)))
  context.after(() => {
    for (const close of closes) close()
  })
  const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  await settle()
  for (const stream of open) stream.send(READY)
  await settle()
  closes[0]?.()
  open[1]?.send(change({ id: 1 }, { id: 1, n: 2 }))
  await settle()
  assert.deepEqual(
    states.map((told) => told.at(-1)?.rows),
    [[{ id: 1 }], [{ id: 1, n: 2 }]],
  )
})

test('a caller whose every stream ends at once is not asked for in a loop', async (t) => {
  let tokens = 0
  const answer = (signal: AbortSignal) => {
    const { response, send, end } = streamOf(signal)
    send(event('end', { reason: 'expired' }))
    end()
    return response
  }
  const page = followed(t, answer, { client: { session: () => `token-${++tokens}` } })
  await page.pass(50_000)
  assert.deepEqual(page.waits(), [1_500, 3_000, 6_000, 12_000, 22_500])
})

test('a wait that no timer can hold is a long one', async (t) => {
  const refusal = { status: 'error', code: 'too_many_streams', message: 'There are too many streams' }
  const headers = { 'retry-after': '99999999' }
  const page = followed(t, () => Response.json(refusal, { status: 429, headers }))
  const timers = mock.method(globalThis, 'setTimeout')
  await page.pass(60_000)
  assert.equal(page.asked.length, 1)
  for (const {
    arguments: [, time = 0],
  } of timers.mock.calls)
    assert.ok(time < 2 ** 31)
})

test('a stream that was late is live when another connection has begun', async (t) => {
  const page = streamed(t)
  await page.settle()
  page.send(READY + event('behind', { seconds: 9 }))
  await page.settle()
  assert.equal(page.states.at(-1)?.status, 'stale')
  page.end()
  await page.pass(2_000)
  page.send(event('ready', {}, 'b'))
  await page.settle()
  assert.equal(page.states.at(-1)?.status, 'live')
})

test('rows of keys that look alike stay apart', async (t) => {
  const page = streamed(t, { client: { numbers: 'exact' } })
  await page.settle()
  const keys = ['1', 1, '"1"', "'", 'a\nb', 'a\\nb', '😀', '\u2028', '', true, 'true', null, '1.10', 1.1]
  const large = ['9007199254740993', '9007199254740992', '-9007199254740993']
  const of = (value: string, n: number) => `{"a":${value},"b":[],"n":${n}}`
  const values = [...keys.map((key) => JSON.stringify(key)), ...large, '1.10', '0.1234567890123456789']
  page.send(
    `event: snapshot\ndata: {"table":"order","rows":[${values.map((value) => of(value, 0)).join()}]}\n\n`,
  )
  page.send(event('ready', {}, 'a'))
  for (const value of values)
    page.send(`event: change\ndata: {"table":"order","key":{"a":${value}},"row":${of(value, 1)}}\n\n`)
  await page.settle()
  const rows = page.states.at(-1)?.rows as readonly { n: number }[]
  // 1.10 as a number of the database and as a text of another column type are one: a column has one type.
  assert.deepEqual(
    [rows.length, rows.filter(({ n }) => n === 1).length],
    [values.length - 1, values.length - 1],
  )
})
