import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { LEASE } from './listener.ts'

/** Barriers of one process: a barrier is passed when no other process can still believe what was changed before it. */
type Barriers = {
  /** The channel on which other processes acknowledge. */
  readonly channel: string
  /** Asks every other live process to acknowledge, and waits for each of them, at most until its lease ends. Never rejects. */
  pass(): Promise<void>
  /** An acknowledgement has arrived on the channel. */
  acknowledge(payload: string): void
  /** Answers the barrier of another process that arrived on the common channel. */
  answer(client: pg.Client, payload: string): void
}

type BarrierOptions = {
  /** The process, in `process_lease`. */
  readonly id: string
  /** The channel that every process listens to. */
  readonly common: string
  /** The connection to ask on. */
  readonly connection: () => Pick<pg.ClientBase, 'query'>
}

const WORD = 'barrier '

export const isBarrier = (payload: string): boolean => payload.startsWith(WORD)

const LEFT = 'extract(epoch from expires_at - clock_timestamp())::float8 * 1000 as left'
const ASK = `select id, ${LEFT}, pg_notify($2, $3) from service.process_lease where id <> $1 and expires_at > clock_timestamp()`
const LOOK = `select id, ${LEFT} from service.process_lease where id = any($1) and expires_at > clock_timestamp()`

/** A process with its lease: the milliseconds that are left of it. */
type Lease = { readonly id: string; readonly left: number }

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
        const end = performance.now() + LEASE
        const asked = await connection().query<Lease>(ASK, values)
        let missing = await acknowledgements.of(asked.rows, end)
        while (missing.length > 0 && performance.now() < end) {
          // Renewed meanwhile, perhaps by a renewal that was under way when it was asked. One that began later brings the notification.
          const renewed = await connection().query<Lease>(LOOK, [missing])
          missing = await acknowledgements.of(renewed.rows, end)
        }
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
  /**
   * Waits until each has acknowledged, or no lease of those that have not is left, until `end` (performance.now()) at most. Returns those
   * that have not.
   */
  of(leases: readonly Lease[], end: number): Promise<readonly string[]>
}

/** Processes may acknowledge before the statement that asks them answers which they are. */
function collectAcknowledgements(): Acknowledgements {
  const arrived = new Set<string>()
  let wake = (): void => {}
  return {
    add(process) {
      arrived.add(process)
      wake()
    },
    async of(leases, end) {
      const begun = performance.now()
      for (;;) {
        const missing = leases.filter(({ id }) => !arrived.has(id))
        const last = begun + Math.max(...missing.map(({ left }) => left))
        const left = Math.min(last, end) - performance.now()
        if (left <= 0) return missing.map(({ id }) => id)
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        // Without a reference: a command that has all answers ends before the timer.
        await Promise.race([promise, sleep(left, undefined, { ref: false })])
      }
    },
  }
}
