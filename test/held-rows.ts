import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** Rows that the test holds, so that requests pass their first checks and then wait. */
export function heldRows(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 4, application_name: 'races' })

  /** Runs the statement in a transaction that stays open. */
  async function hold(statement: string, values: readonly string[]) {
    const client = await pool.connect()
    await client.query('begin')
    await client.query(statement, [...values])
    return {
      client,
      /** Resolves once so many requests wait for a lock. */
      async waiting(count: number): Promise<void> {
        for (;;) {
          const { rows } = await pool.query<{ count: number }>(
            `select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          )
          if ((rows[0]?.count ?? 0) >= count) return
          await sleep(2)
        }
      },
      async release() {
        await client.query('commit')
        client.release()
      },
    }
  }

  return {
    hold,
    /** Starts all while the organization's row is held, so that they act in this order. */
    async inOrder<T>(organizationId: string, requests: readonly (() => Promise<T>)[]): Promise<T[]> {
      const held = await hold('select from service.organization where id = $1 for update', [organizationId])
      const answers: Promise<T>[] = []
      for (const request of requests) {
        answers.push(request())
        await held.waiting(answers.length)
      }
      await held.release()
      return Promise.all(answers)
    },
    /** Starts it while the user's row is held, in a transaction that then runs the statement with the user's id. */
    async during<T>(userId: string, request: () => Promise<T>, statement: string): Promise<T> {
      const held = await hold('select from service."user" where id = $1 for no key update', [userId])
      const answer = request()
      await held.waiting(1)
      await held.client.query(statement, [userId])
      await held.release()
      return answer
    },
    close: () => pool.end(),
  }
}
