import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Key } from '#databases/drivers/changes.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Cohort, cohortOf, copyOf, type Member, note, type Readings, readPending } from './cohort.ts'
import type { LiveTable } from './live-table.ts'

const key = (id: number): Key => ({ json: `{"id":${id}}`, values: [`${id}`] })

/** A table of which every reading finds the row 1. */
function readingTable() {
  const plan = { request: { columns: [] }, output: [], table: { schema: 'public', name: 'note' } }
  const driver = {
    keepsGuards: true,
    plan: async () => plan,
    select: async () => ({ json: [Buffer.from('[{"text":"one","primary key 0":1}]')] }),
  }
  const caller = { client: { name: 'default' }, backend: driver, grant: { kind: 'none' }, needed: [] }
  const fetch = { kind: 'fetch', caller, plan, timings: { observe() {} } }
  const live = { name: 'note', key: ['id'], reads: { claims: [], tables: [] }, owners: undefined, fetch }
  return {
    // A reading takes no more of both than these.
    caller: caller as unknown as GatewayCaller,
    live: live as unknown as LiveTable,
  }
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
  const { caller, live } = readingTable()
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
  const readings: Readings = {
    // Of these it takes the bounds, and nothing else.
    kernel: { config: { gateway: { max_rows: 10 } } } as unknown as Readings['kernel'],
    slots: { run: (work) => work() } as Readings['slots'],
    trusted: () => Promise.resolve(),
    failed(error) {
      throw error
    },
    told() {},
  }
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
