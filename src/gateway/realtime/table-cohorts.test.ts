import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Key } from '#databases/drivers/changes.ts'
import { type Cohort, cohortOf, type Member, show } from './cohort.ts'
import type { LiveTable } from './live-table.ts'
import { createTableCohorts } from './table-cohorts.ts'

const key = (id: number): Key => ({ json: `{"id":${id}}`, values: [`${id}`] })

/** Of a user who sees the rows with this owner and has been shown these; undefined: of one who may see any. */
function cohort(owner: string | null | undefined, ...shown: readonly number[]): Cohort {
  const reads = { claims: [], tables: [], owners: [{ column: 'user_id', claim: 'user_id' }] }
  // It takes no more of both than these.
  const live = { reads, owners: owner === undefined ? undefined : [owner] } as unknown as LiveTable
  const own = cohortOf(live, {} as Member)
  for (const id of shown) show(own, key(id).json)
  return own
}

const valuesOf = (id: number, owner: string | null) => new Map([[key(id).json, [owner]]])

function listed() {
  const cohorts = createTableCohorts()
  const names = new Map<Cohort, string>()
  return {
    ...cohorts,
    put(name: string, one: Cohort): Cohort {
      names.set(one, name)
      cohorts.add(one)
      cohorts.route(one)
      return one
    },
    concerned: (id: number, values?: ReturnType<typeof valuesOf>) =>
      [...new Set(cohorts.concernedBy(key(id), values))].map((one) => names.get(one)).toSorted(),
  }
}

test('a change concerns the owner of the row, those who were shown it, and whom no owner chooses rows for', () => {
  const { put, concerned, remove, ownerColumns, told } = listed()
  put('any', cohort(undefined))
  put('nobody', cohort(null))
  const ada = put('ada', cohort('ada', 1))
  assert.equal(ownerColumns()?.join(), 'user_id')
  put('bea', cohort('bea', 2))
  put('also bea', cohort('bea'))
  assert.deepEqual(concerned(3, valuesOf(3, 'ada')), ['ada', 'any'])
  assert.deepEqual(concerned(1, valuesOf(1, 'bea')), ['ada', 'also bea', 'any', 'bea'], 'it moves')
  assert.deepEqual(concerned(1, new Map()), ['ada', 'any'], 'it is gone')
  assert.deepEqual(concerned(9, valuesOf(9, null)), ['any'], 'it is of nobody')
  assert.deepEqual(concerned(1), ['ada', 'also bea', 'any', 'bea', 'nobody'], 'its owner is not known')
  told(ada, [{ key: key(1), op: 'leave' }, { key: key(4), op: 'insert' }]) // biome-ignore format: one line
  assert.deepEqual(concerned(1, new Map()), ['any'])
  assert.deepEqual(concerned(4, new Map()), ['ada', 'any'])
  hideFrom(ada, 1)
  show(ada, key(4).json)
  remove(ada)
  assert.deepEqual(concerned(4, valuesOf(4, 'ada')), ['any'])
})

const hideFrom = ({ shown }: Cohort, id: number) => shown.delete(key(id).json)

test('every change concerns a cohort that is reading, and one that does not know yet what it shows', () => {
  const { put, add, route, unroute, concerned, remove } = listed()
  const ada = put('ada', cohort('ada', 1))
  unroute(ada)
  assert.deepEqual(concerned(5, valuesOf(5, 'bea')), ['ada'])
  route(ada)
  assert.deepEqual(concerned(5, valuesOf(5, 'bea')), [])
  const late = cohort('cem')
  add(late)
  assert.equal(concerned(5, valuesOf(5, 'bea')).length, 1)
  for (const one of [ada, late]) remove(one)
  unroute(ada)
  route(ada)
  assert.deepEqual(concerned(1, valuesOf(1, 'ada')), [], 'it is there no more')
})
