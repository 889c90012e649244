import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Key } from '#databases/drivers/changes.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Cohort, cohortOf, copyOf, type Member, note, type Readings, readPending } from './cohort.ts'
import type { LiveTable } from './live-table.ts'

const key = (id: number): Key => ({ json: `{"id":${id}}`, values: [`${id}`] })

/** A table in which a reading of keys finds these rows, as parts of a JSON array. */
function readingTable(json: (keys: readonly string[]) => Iterable<string>) {
  const plan = { request: { columns: [] }, output: [], table: { schema: 'public', name: 'note' } }
  const driver = {
    keepsGuards: true,
    plan: async (request: object) => ({ ...plan, request }),
    select: async ({ request }: { request: { where: { value: readonly string[] } } }) => ({
      json: Iterator.from(json(request.where.value)).map((part) => Buffer.from(part)),
    }),
  }
  const caller = { client: { name: 'default' }, backend: driver, grant: { kind: 'none' }, needed: [] }
  const fetch = { kind: 'fetch', caller, plan, timings: { observe() {} } }
  const table = { schema: 'public', table: 'note' }
  const reads = { claims: [], tables: [] }
  const live = { name: 'note', table, key: ['id'], reads, owners: undefined, fetch }
  return {
    // A reading takes no more of both than these.
    caller: caller as unknown as GatewayCaller,
    live: live as unknown as LiveTable,
  }
}

const readings: Readings = {
  // Of these it takes the bounds, and nothing else.
  kernel: { config: { gateway: { max_rows: 100 } } } as unknown as Readings['kernel'],
  slots: { acquire: async () => () => {} },
  trusted: () => Promise.resolve(),
  failed(error) {
    throw error
  },
  told() {},
}

const member = (parts: Partial<Member> = {}): Member => ({
  judge: () => Promise.reject(new Error('not asked')),
  deliver() {},
  drained: () => Promise.resolve(),
  restart() {},
  moved() {},
  noted() {},
  behind() {},
  dismiss() {},
  ...parts,
})

test('at each moment of a reading, a copy of the cohort has still to read the row, or its members were told', async () => {
  const { caller, live } = readingTable(() => ['[{"text":"one","primary key 0":1}]'])
  let isOver = false
  let told = 0
  const cohort: Cohort = cohortOf(
    live,
    member({
      judge: async () => caller,
      deliver({ events }) {
        told += events.length
      },
    }),
  )
  cohort.state = 'idle'
  note(cohort, key(1))
  const reading = readPending(readings, cohort).finally(() => {
    isOver = true
  })
  for (let moment = 0; !isOver; moment++) {
    const copy = copyOf(cohort, member())
    assert.ok(
      copy.pending.has(key(1).json) || told === 1,
      `a copy at moment ${moment} would never tell the row`,
    )
    await Promise.resolve()
  }
  await reading
  assert.deepEqual([told, [...cohort.shown]], [1, [key(1).json]])
})

test('a reading whose rows are large ends before it takes too much memory, and the next ones tell the others', async () => {
  const asked: number[] = []
  let found = 0
  const { caller, live } = readingTable(function* (keys) {
    asked.push(keys.length)
    for (const [index, id] of keys.entries()) {
      found++
      yield `${index === 0 ? '[' : ','}{"text":"${'x'.repeat(1_000_000)}","primary key 0":${id}}`
    }
    yield ']'
  })
  const told: string[] = []
  const deliver: Member['deliver'] = ({ events }) => {
    for (const event of events) told.push(event.key.json)
  }
  const cohort = cohortOf(live, member({ judge: async () => caller, deliver }))
  cohort.state = 'idle'
  const keys = Array.from({ length: 12 }, (_, index) => key(index + 1))
  for (const one of keys) note(cohort, one)
  await readPending(readings, cohort)
  assert.deepEqual(
    told,
    keys.map(({ json }) => json),
  )
  assert.equal(found, keys.length, 'none is read twice')
  const [, second = keys.length] = asked
  assert.ok(second < keys.length / 2, `${asked}`)
})
