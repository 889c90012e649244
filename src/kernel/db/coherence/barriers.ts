import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { LEASE } from './listener.ts'

/** Barriers of one process: a barrier is passed when no other process can still believe what was changed before it. */
export type Barriers = {
  /** The channel on which other processes acknowledge. */
  readonly channel: string
  /** Asks every other live process to acknowledge, and waits for each of them, at most one lease. Never rejects. */
  pass(): Promise<void>
  /** An acknowledgement has arrived on the channel. */
  acknowledge(payload: string): void
  /** Answers the barrier of another process that arrived on the common channel. */
  answer(client: pg.Client, payload: string): void
}

export type BarrierOptions = {
  /** The process, in `process_lease`. */
  readonly id: string
  /** The channel that every process listens to. */
  readonly common: string
  /** The connection to ask on. */
  readonly connection: () => Pick<pg.ClientBase, 'query'>
}

const WORD = 'barrier '

export const isBarrier = (payload: string): boolean => payload.startsWith(WORD)

const ASK = `select id, pg_notify($2, $3) from service.process_lease where id <> $1 and expires_at > clock_timestamp()`

export function createBarriers({ id, common, connection }: BarrierOptions): Barriers {
  const channel = `gatehouse_ack_${id.replaceAll('-', '')}`
  const open = new Map<string, Acknowledgements>()
  let count = 0
  return {
    channel,
    async pass() {
      const name = String(++count)
      const acknowledgements = collectAcknowledgements()
      open.set(name, acknowledgements)
      try {
        const values = [id, common, `${WORD}${name} ${channel}`]
        const { rows } = await connection().query<{ id: string }>(ASK, values)
        await acknowledgements.all(rows.map((row) => row.id))
      } catch {
        // The question was lost: every lease that ran at the commit has to run out.
        await sleep(LEASE)
      } finally {
        open.delete(name)
      }
    },
    acknowledge(payload) {
      const [name = '', process = ''] = payload.split(' ')
      open.get(name)?.add(process)
    },
    answer(client, payload) {
      const [, name, asker] = payload.split(' ')
      if (asker === channel) return
      // If this is lost, the process that asks waits for one lease.
      client.query('select pg_notify($1, $2)', [asker, `${name} ${id}`]).catch(() => {})
    },
  }
}

type Acknowledgements = {
  add(process: string): void
  /** Resolves when each of these has acknowledged, or when one lease has passed. */
  all(processes: readonly string[]): Promise<void>
}

/** Processes may acknowledge before the statement that asks them answers which they are. */
function collectAcknowledgements(): Acknowledgements {
  const arrived = new Set<string>()
  const missing = new Set<string>()
  const { promise, resolve } = Promise.withResolvers<void>()
  return {
    add(process) {
      arrived.add(process)
      if (missing.delete(process) && missing.size === 0) resolve()
    },
    async all(processes) {
      for (const process of processes) if (!arrived.has(process)) missing.add(process)
      // Without a reference: a command that has all answers ends before the timer.
      if (missing.size > 0) await Promise.race([promise, sleep(LEASE, undefined, { ref: false })])
    },
  }
}
