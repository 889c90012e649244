import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { connect } from '#client/connection.ts'
import { type LiveRequest, type LiveState, openLive } from '#client/live/open-live.ts'
import { createCutConnections } from '#test/client/cut-connections.ts'
import { eventually } from '#test/embedded.ts'
import { liveTables } from '#test/live-tables.ts'

/**
 * Pages of the client beside a writer, with breaks at any moment. At each quiet point every page has the rows of a fetch. It never shows a row twice, nor
 * less than the rows that nobody deletes. `PROPERTY_RUNS=1000` plays more rounds.
 */
const { t, key, sql, ddl, liveTable, insert } = await liveTables('select')
const ROUNDS = Number(process.env.PROPERTY_RUNS ?? 3)
/** Rows that stay, which are several pieces of a snapshot together. */
const LASTING = Array.from({ length: 6 }, (_, at) => ({ id: 100 + at, n: 9, text: `${at}`.repeat(30_000) }))

type Row = { readonly id?: number; readonly n: number; readonly text?: string }
type Step = {
  readonly what: 'write' | 'cut' | 'off' | 'on' | 'look' | 'alter'
  readonly id: number
  readonly n: number
}

const anySteps = fc.array(
  fc.record<Step>({
    what: fc.constantFrom('write', 'write', 'write', 'write', 'write', 'cut', 'off', 'on', 'look', 'alter'),
    id: fc.integer({ min: 0, max: 5 }),
    n: fc.integer({ min: 0, max: 9 }),
  }),
  { minLength: 10, maxLength: 30 },
)

const REQUESTS: readonly Omit<LiveRequest, 'table_name'>[] = [
  {},
  { columns: ['n', 'id'], conditions: { operator: 'gt', column: 'n', value: 4 } },
  { columns: ['n', 'text'] },
]

function openPage(request: LiveRequest) {
  const { fetch, cut, setOffline } = createCutConnections()
  const states: LiveState<Row>[] = []
  const connection = { ...connect({ url: t.url, fetch }), headers: async () => ({ ...key.headers }) }
  const close = openLive<Row>(connection, request, (state) => void states.push(state))
  return { request, states, close, cut, setOffline }
}
type Page = ReturnType<typeof openPage>

const write = (table: string, { id, n }: Step): Promise<unknown> =>
  sql(
    n % 3 === 0
      ? `delete from ${table} where id = ${id}`
      : `insert into ${table} values (${id}, ${n}, 'new') on conflict (id) do update set n = ${n}`,
  )

const sorted = (rows: readonly object[] | undefined): string =>
  JSON.stringify(rows?.map((row) => JSON.stringify(row)).sort())

async function expectCurrent({ request, states, setOffline }: Page): Promise<void> {
  setOffline(false)
  const { data } = (await key.post('/gateway/fetch', request)).body
  const isCurrent = () => states.at(-1)?.status === 'live' && sorted(states.at(-1)?.rows) === sorted(data)
  await eventually(isCurrent).catch(() => assert.equal(sorted(states.at(-1)?.rows), sorted(data)))
}

function expectWhole({ states }: Page): void {
  for (const { rows, status } of states) {
    const ids = rows.flatMap(({ id }) => id ?? [])
    assert.equal(new Set(ids).size, ids.length, 'a row is shown twice')
    const lasting = rows.filter(({ n }) => n === 9).length
    assert.ok(status === 'loading' || lasting >= LASTING.length, `only ${lasting} of the lasting rows`)
  }
}

test('a page shows the rows of a fetch in the end, whatever breaks, and never a part of them', async () => {
  await fc.assert(
    fc.asyncProperty(anySteps, async (steps) => {
      const table = await liveTable('id int primary key, n int, text text')
      await insert(table, LASTING)
      const pages = REQUESTS.map((request) => openPage({ table_name: table, ...request }))
      try {
        for (const [at, step] of steps.entries()) {
          const page = pages[step.id % pages.length] ?? assert.fail()
          if (step.what === 'write') await write(table, step)
          if (step.what === 'cut') page.cut()
          if (step.what === 'off' || step.what === 'on') page.setOffline(step.what === 'off')
          if (step.what === 'alter') await ddl(`alter table ${table} add column c${at} int`)
          if (step.what === 'look') await expectCurrent(page)
        }
        for (const page of pages) {
          await expectCurrent(page)
          expectWhole(page)
        }
      } finally {
        for (const { close } of pages) close()
      }
    }),
    { numRuns: ROUNDS },
  )
})
