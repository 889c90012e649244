import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLiveRows } from '#client/live/live-rows.ts'
import { hiddenName } from '#client/rows/columns.ts'

test('the rows of a snapshot are shown when it is whole', () => {
  const rows = createLiveRows(undefined)
  rows.begin()
  rows.add([{ id: 1 }])
  assert.equal(rows.list(), undefined)
  rows.add([{ id: 2 }])
  rows.ready()
  assert.deepEqual(rows.list(), [{ id: 1 }, { id: 2 }])
  rows.begin()
  rows.add([{ id: 3 }])
  assert.deepEqual(rows.list(), [{ id: 1 }, { id: 2 }])
  rows.ready()
  assert.deepEqual(rows.list(), [{ id: 3 }])
})

test('changes replace the row of their key in its place, and remove it', () => {
  const rows = createLiveRows(undefined)
  rows.begin()
  rows.add([
    { id: 1, n: 1 },
    { id: 2, n: 1 },
  ])
  rows.ready()
  assert.ok(rows.apply({ id: 1 }, { id: 1, n: 2 }))
  assert.ok(rows.apply({ id: 3 }, { id: 3, n: 3 }))
  assert.ok(rows.apply({ id: 2 }))
  assert.ok(rows.apply({ id: 9 }))
  assert.deepEqual(rows.list(), [
    { id: 1, n: 2 },
    { id: 3, n: 3 },
  ])
})

test('columns of the key that were not asked for are read under names of their own, and not shown', () => {
  const rows = createLiveRows(['id:title', 'n'])
  rows.begin()
  rows.add([{ id: 'Emma', n: 1 }])
  rows.ready()
  assert.deepEqual(rows.columns(), ['id:title', 'n'])
  assert.equal(rows.apply({ id: 7, 'a "b"': 8 }, { id: 'Emma', n: 2 }), false)
  assert.deepEqual(rows.list(), [{ id: 'Emma', n: 1 }])
  const [first, second] = [hiddenName(0), hiddenName(1)]
  assert.deepEqual(rows.columns(), ['id:title', 'n', `${first}:id`, `${second}:"a \\"b\\""`])
  rows.begin()
  rows.add([
    { id: 'Emma', n: 2, [first]: 7, [second]: 8 },
    { id: 'Emma', n: 3, [first]: 7, [second]: 9 },
  ])
  rows.ready()
  assert.deepEqual(rows.list(), [
    { id: 'Emma', n: 2 },
    { id: 'Emma', n: 3 },
  ])
  assert.ok(rows.apply({ id: 7, 'a "b"': 8 }, { id: 'Emma', n: 4, [first]: 7, [second]: 8 }))
  assert.ok(rows.apply({ id: 7, 'a "b"': 9 }))
  assert.deepEqual(rows.list(), [{ id: 'Emma', n: 4 }])
})

test('another key than the hidden columns are of needs a snapshot with its own columns', () => {
  const rows = createLiveRows(['title'])
  rows.begin()
  rows.ready()
  assert.equal(rows.apply({ id: 1 }, { title: 'Emma' }), false)
  const hidden = hiddenName(0)
  rows.begin()
  rows.add([{ title: 'Emma', [hidden]: 1 }])
  rows.ready()
  assert.equal(rows.apply({ code: 'e' }, { title: 'changed', [hidden]: 1 }), false)
  assert.deepEqual(rows.list(), [{ title: 'Emma' }])
  assert.deepEqual(rows.columns(), ['title', `${hidden}:code`])
  rows.begin()
  rows.add([{ title: 'changed', [hidden]: 'e' }])
  rows.ready()
  assert.ok(rows.apply({ code: 'e' }, { title: 'Emma again', [hidden]: 'e' }))
  assert.deepEqual(rows.list(), [{ title: 'Emma again' }])
})

test('a key that a number cannot hold is refused, and held as a bigint', () => {
  const rows = createLiveRows(undefined)
  rows.begin()
  rows.ready()
  // biome-ignore lint/correctness/noPrecisionLoss: that is the subject
  assert.throws(() => rows.apply({ id: 9007199254740993 }, { id: 1 }), { message: /numbers: "exact"/ })
  assert.ok(rows.apply({ id: 9007199254740993n }, { id: 9007199254740993n }))
  assert.ok(rows.apply({ id: 9007199254740992n }, { id: 9007199254740992n }))
  assert.equal(rows.list()?.length, 2)
})

test('with exact numbers, a number as a key is the whole one', () => {
  const rows = createLiveRows(undefined, 'exact')
  rows.begin()
  rows.ready()
  for (const id of [3.4e38, 0.30000000000000004, '0.12345678901234567891'])
    assert.ok(rows.apply({ id }, { id }))
  assert.equal(rows.list()?.length, 3)
})
