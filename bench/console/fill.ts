import { withClient } from '#test/database.ts'
import { grow, ROWS_TABLE, SIGNED_UP } from '../growth/fill.ts'
import { signUp } from '../loads.ts'
import type { Bench } from '../scenario.ts'

const STEP = 500_000

/** Users with sessions, memberships and a trail, an administrator, and the rows of `growth_rows`. */
export async function fillConsole(
  bench: Pick<Bench, 'server' | 'service'>,
  { users, rows }: { readonly users: number; readonly rows: number },
): Promise<void> {
  const { service } = bench
  await signUp(service.url, SIGNED_UP)
  await withClient(service.controlUrl, (client) =>
    client.query(`update service."user" set role = 'admin', email_verified = true`),
  )
  await service.sql(ROWS_TABLE)
  await grow(bench, 0, users)
  await withClient(service.databaseUrl, async (client) => {
    for (let first = users + 1; first <= rows; first += STEP)
      await client.query(
        `insert into growth_rows select n, n % 40, 'name ' || n, n * 1.25, now()
         from generate_series(${first}, ${Math.min(rows, first + STEP - 1)}) as n`,
      )
    await client.query('vacuum (analyze) growth_rows')
  })
}
