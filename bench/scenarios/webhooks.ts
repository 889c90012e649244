import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { dropDatabase, withClient } from '#test/database.ts'
import { startPeer, stop } from '../peer.ts'
import type { EventsDone, EventsOrder } from '../peers/by-hand/events.ts'
import type { Bench, Scenario } from '../scenario.ts'
import type { Server } from '../server.ts'
import { secret } from '../service.ts'
import type { Side } from '../turns.ts'

const BARE = 'bare signed POSTs'
const EVENTS = 3_000

/** From the first event that one process emits until the outcome of its last delivery is written, in comparison to POSTs of the same bodies. */
export const webhooks: Scenario = {
  title: 'webhook delivery, durable outbox',
  unit: 'events per second',
  target: { of: 'Gatehouse', against: BARE, atLeast: 0.4 },
  async open({ server, after }) {
    const receiver = await startPeer(path.join(import.meta.dirname, '../peers/by-hand/webhook-receiver.ts'))
    after(receiver.stop)
    const url = await createDatabase(server, after)
    const child = fork(path.join(import.meta.dirname, '../peers/by-hand/events.ts'), [url, receiver.url])
    after(() => stop(child))
    await once(child, 'message')
    const received = async () => Number(await (await fetch(`${receiver.url}/count`)).text())
    const sideOf = (name: string, kind: EventsOrder['kind']): Side => {
      let [before, sent] = [0, 0]
      return {
        name,
        pid: child.pid,
        about:
          'the kernel in a process of its own; signature, checked address; the receiver is another process',
        async work() {
          before = await received()
          const done = once(child, 'message')
          child.send({ kind, events: EVENTS } satisfies EventsOrder)
          const [{ seconds }] = (await done) as [EventsDone] // the program sends nothing else
          sent = EVENTS
          return { done: EVENTS, failed: 0, seconds, load: 0 }
        },
        /** Every event has arrived once. */
        async check() {
          if (sent === 0) return
          // The receiver may count the last one after its answer.
          await sleep(20)
          assert.equal((await received()) - before, sent)
          sent = 0
        },
      }
    }
    return [sideOf('Gatehouse', 'durable'), sideOf(BARE, 'bare')]
  },
}

/** Not the service's: its own workers would take the deliveries. */
async function createDatabase({ url }: Server, after: Bench['after']): Promise<string> {
  const name = `gatehouse_bench_events_${secret().slice(0, 8)}`
  await withClient(url, (db) => db.query(`create database ${name}`))
  after(() => withClient(url, (db) => dropDatabase(db, name)))
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}
