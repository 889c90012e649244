import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { controlDatabase, testKernel } from '#test/harness.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const controlUrl = await controlDatabase()
const proxy = await startProxy(controlUrl)
after(() => proxy.close())
/** Like two processes on one database, of which the network of the first can fail. */
const here = await testKernel({ controlUrl: proxy.url })
const there = await testKernel({ controlUrl })

const received: string[] = []
there.coherence.subscribe({ apply: (tag) => void received.push(tag), clear: () => {} })

const timed = async (work: Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work
  return performance.now() - began
}

/** The lease of a process that has crashed, with so many milliseconds left. */
async function addLease(left: number): Promise<string> {
  const id = randomUUID()
  await sql`insert into service.process_lease (id, expires_at)
    values (${id}, clock_timestamp() + ${left} * interval '1 millisecond')`.execute(there.db)
  return id
}

/** Milliseconds for a busy machine, beside leases: twenty times what a barrier takes that waits for none. */
const slack = async (): Promise<number> => 20 * (await timed(there.coherence.settle()))

test('a crashed process is waited for until its lease ends, and no longer', async () => {
  const most = 2_500 + (await slack())
  // Counted from before the lease: on a busy machine a part of it is over when its row is answered.
  const began = performance.now()
  await addLease(400)
  const took = await timed(there.coherence.settle())
  assert.ok(performance.now() - began >= 400 && took < most, `${took} ms`)
})

test('a process that renews its lease meanwhile is waited for on', async () => {
  const most = 4_500 + (await slack())
  // Long enough for a busy machine to renew it before it ends, and less than the three seconds that a barrier waits at most.
  const id = await addLease(1_500)
  const settled = timed(there.coherence.settle())
  await sleep(100)
  await sql`update service.process_lease set expires_at = clock_timestamp() + interval '2500 milliseconds'
    where id = ${id}`.execute(there.db)
  const took = await settled
  assert.ok(took > 2_400 && took < most, `${took} ms`)
})

test('a change is announced although the connection that listens has become silent', async () => {
  proxy.forget('gatehouse listener')
  await here.coherence.announce(['rows:silent'])
  assert.ok(received.includes('rows:silent'))
})

test('a change that cannot be announced is refused, and announced as soon as the database is back', async () => {
  await proxy.cut()
  await assert.rejects(here.coherence.announce(['rows:cut']))
  assert.ok(!received.includes('rows:cut'))
  await proxy.mend()
  // The test timeout ends it.
  while (!received.includes('rows:cut')) await sleep(20)
})
