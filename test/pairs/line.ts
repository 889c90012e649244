import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** Holds a user's row, so that whatever states a proof again waits for it, and sees who waits. */
export type Held = {
  /** Resolves once so many statements wait for the row. */
  waiting(count: number): Promise<void>
  release(): Promise<void>
}

/** The database's own queue for a row is the barrier: whoever waits for it stands inside the statement that locks it. */
export function rowLines(url: string, most: number) {
  // One more looks at who waits.
  const pool = new pg.Pool({ connectionString: url, max: most + 1, application_name: 'pairs' })
  const waits = new Set<{ row: string; count: number; resolve: () => void }>()
  let running = false

  const watch = async (): Promise<void> => {
    if (running) return
    running = true
    while (waits.size > 0) {
      const { rows } = await pool.query<{ row: string; count: number }>(
        `select format('(%s,%s)', page, tuple) as row, count(*)::int from pg_locks
         where locktype = 'tuple' and relation = 'service."user"'::regclass
           and database = (select oid from pg_database where datname = current_database()) group by 1`,
      )
      for (const wait of waits) {
        if ((rows.find(({ row }) => row === wait.row)?.count ?? 0) < wait.count) continue
        waits.delete(wait)
        wait.resolve()
      }
      await sleep(1)
    }
    running = false
  }

  return {
    async hold(userId: string): Promise<Held> {
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
