import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OWN_LOCKS } from '#test/database.ts'

/** A lock on a user's row. Operations that re-check their proof wait for it. */
export type RowLock = {
  /** Resolves once this many statements wait for the row. */
  waiting(count: number): Promise<void>
  release(): Promise<void>
}

/** Locks rows of users. PostgreSQL's queue for a row is the barrier: each waiter is inside the statement that locks the row. */
export function rowLocks(url: string, most: number) {
  // One more connection watches the waiters.
  const pool = new pg.Pool({ connectionString: url, max: most + 1, application_name: 'pairs' })
  const waits = new Set<{ row: string; count: number; resolve: () => void }>()
  let running = false

  const watch = async (): Promise<void> => {
    if (running) return
    running = true
    while (waits.size > 0) {
      const { rows } = await pool.query<{ row: string; count: number }>(
        `select format('(%s,%s)', page, tuple) as row, count(*)::int from ${OWN_LOCKS}
         where locktype = 'tuple' and relation = 'service."user"'::regclass group by 1`,
      )
      for (const wait of waits) {
        if ((rows.find(({ row }) => row === wait.row)?.count ?? 0) < wait.count) continue
        waits.delete(wait)
        wait.resolve()
      }
      await sleep(5)
    }
    running = false
  }

  return {
    async lock(userId: string): Promise<RowLock> {
      const client = await pool.connect()
      await client.query('begin')
      const { rows } = await client.query<{ row: string }>(
        `select ctid::text as row from service."user" where id = $1 for no key update`,
        [userId],
      )
      const row = rows[0]?.row ?? ''
      return {
        waiting: (count) =>
          new Promise((resolve, reject) => {
            waits.add({ row, count, resolve })
            watch().catch(reject)
          }),
        async release() {
          for (const wait of waits) if (wait.row === row) waits.delete(wait)
          await client.query('rollback')
          client.release()
        },
      }
    },
    close: () => pool.end(),
  }
}
