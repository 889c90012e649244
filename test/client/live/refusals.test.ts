import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hiddenName } from '#client/rows/columns.ts'
import { type Answer, event, followed, READY, streamOf } from './followed-page.ts'

const snapshot = (row: object) =>
  event('snapshot', { table: 'order', rows: [row] }) + event('ready', { position: 'a' }, 'a')

const refused =
  (code: string): Answer =>
  () =>
    Response.json({ status: 'error', code, message: 'No' }, { status: 400 })

/** A stream that ends after these events. */
const told =
  (text: string): Answer =>
  (signal) => {
    const { response, send, end } = streamOf(signal)
    send(text)
    end()
    return response
  }

/** Answers one request after the other, and fails any further one. */
const inTurn =
  (...answers: Answer[]): Answer =>
  (signal) =>
    answers.shift()?.(signal) ?? assert.fail('asked too often')

/** As often as the client asks again. */
const always = (code: string): readonly Answer[] => Array(6).fill(refused(code))

test('columns of a key that the table has no more are asked for no more, and a refusal of the others that lasts ends it', async (t) => {
  const change = event('change', { table: 'order', op: 'update', key: { id: 1 }, row: { n: 2 } })
  const answer = inTurn(
    told(snapshot({ n: 1 }) + change),
    told(snapshot({ n: 2, [hiddenName(0)]: 1 })),
    refused('unknown_column'),
    told(snapshot({ n: 3 })),
    ...always('unknown_column'),
  )
  const page = followed(t, answer, { columns: ['n'] })
  await page.pass(120_000)
  assert.equal(page.asked.length, 10)
  assert.deepEqual(
    page.asked.map(({ columns }) => columns?.length),
    [1, 2, 2, 1, 1, 1, 1, 1, 1, 1],
  )
  assert.deepEqual(page.states.at(-1)?.rows, [{ n: 3 }])
  assert.equal(page.statuses().at(-1), 'stale unknown_column')
})

test('a table that was live is asked for again for about a minute', async (t) => {
  const page = followed(t, inTurn(told(READY), refused('not_live'), told(READY), ...always('not_live')))
  await page.pass(120_000)
  assert.deepEqual(page.waits(), [1_500, 3_000, 1_500, 3_000, 6_000, 12_000, 22_500, 22_500])
  assert.deepEqual(
    page.statuses().filter((status) => !status.startsWith('stale')),
    ['loading', 'live', 'live'],
  )
  assert.deepEqual(page.states.at(-1)?.rows, [{ id: 1 }])
})

test('a table that is not live ends the subscription', async (t) => {
  const page = followed(t, inTurn(refused('not_live')))
  await page.pass(20_000)
  assert.equal(page.asked.length, 1)
  assert.equal(page.statuses().at(-1), 'stale not_live')
})
