import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testKernel } from '#test/harness.ts'
import { createEvents } from './events/outbox.ts'
import { atomically, emit, type Kernel } from './kernel.ts'

const kernel = await testKernel()
const emitted: string[] = []
kernel.events.subscribe(
  (name, data) => void emitted.push(`${name} ${'function' in data ? data.function : ''}`),
)

const happen = (kernel: Kernel, name: string) =>
  emit(kernel, 'gateway_rpc', { client: 'default', request_id: null, function: name, affected_rows: 0 })
const keys = async () =>
  (await kernel.db.selectFrom('rateLimit').select('key').orderBy('key').execute()).map(({ key }) => key)
const write = (kernel: Kernel, key: string) =>
  kernel.db.insertInto('rateLimit').values({ key, points: 1 }).execute()

test('outside a transaction an event is emitted at once', async () => {
  await happen(kernel, 'alone')
  assert.deepEqual(emitted.splice(0), ['gateway_rpc alone'])
})

test('in a transaction, statements and events take effect together, in order, at the commit', async () => {
  const answer = await atomically(kernel, async (kernel) => {
    await happen(kernel, 'first')
    await write(kernel, 'a')
    await happen(kernel, 'second')
    assert.deepEqual(emitted, [])
    assert.deepEqual(await keys(), [], 'others see it already')
    return 'the answer'
  })
  assert.equal(answer, 'the answer')
  assert.deepEqual(emitted.splice(0), ['gateway_rpc first', 'gateway_rpc second'])
  assert.deepEqual(await keys(), ['a'])
})

test('after a rollback nothing is emitted or written', async () => {
  const broken = new Error('no')
  const work = atomically(kernel, async (kernel) => {
    await write(kernel, 'b')
    await happen(kernel, 'nobody')
    throw broken
  })
  await assert.rejects(work, broken)
  assert.deepEqual([emitted, await keys()], [[], ['a']])
})

test('a transaction that the database ends emits nothing either', async () => {
  const work = atomically(kernel, async (kernel) => {
    await happen(kernel, 'nobody')
    await write(kernel, 'a')
  })
  await assert.rejects(work, { code: '23505' })
  assert.deepEqual(emitted, [])
})

test('a transaction inside a transaction is part of it', async () => {
  const broken = new Error('no')
  const work = atomically(kernel, async (outer) => {
    await atomically(outer, async (inner) => {
      assert.equal(inner.db, outer.db)
      await write(inner, 'c')
      await happen(inner, 'nobody')
    })
    assert.deepEqual(emitted, [], 'the inner end is no commit')
    throw broken
  })
  await assert.rejects(work, broken)
  assert.deepEqual([emitted, await keys()], [[], ['a']])
})

test('an event of a user cannot be emitted outside of the transaction that causes it', async () => {
  await assert.rejects(
    emit(kernel, 'auth_user_created', { user_id: 'x' }),
    /in the transaction that causes it/,
  )
  assert.deepEqual(emitted, [])
})

test('an event in a transaction needs no other connection, also when no webhook is known yet', async () => {
  const pipelined = { ...kernel.pipelined, query: () => new Promise<never>(() => {}) }
  const events = createEvents({ ...kernel, pipelined })
  const user = { user_id: '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6' }
  await atomically({ ...kernel, events }, (kernel) => emit(kernel, 'auth_user_deleted', user))
})
