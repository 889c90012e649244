import assert from 'node:assert/strict'
import { after } from 'node:test'
import pg from 'pg'
import type { Config } from '#kernel/config/config.ts'
import { ownSession } from '#kernel/db/session-settings.ts'
import { withClient } from './database.ts'
import { type Answer, type TestService, testService } from './harness.ts'
import { installedPrograms, startInstalledServer } from './installed-postgres.ts'

const programs = await installedPrograms()
/** For tests that need `backupService`. */
export const NEEDS_PROGRAMS = {
  skip: programs === undefined && 'needs an installed PostgreSQL with pg_dump (Debian: postgresql)',
}

/** A service with a client `shop` on a server whose pg_dump is installed; the client has a table `city` of 1,000 rows. */
export async function backupService(location: Partial<Config['backups']> = {}) {
  const server = programs === undefined ? undefined : await startInstalledServer(programs)
  after(() => server?.stop())
  const shopUrl = (await server?.database('shop')) ?? 'postgres://shop:x@127.0.0.1:1/shop'
  const clients = {
    shop: { driver: 'postgresql' as const, url: shopUrl },
    project: { driver: 'supabase' as const, url: 'http://:key@127.0.0.1:1' },
  }
  const schedules = { nightly: { client: 'shop', cron: '30 3 * * *', keep: 1 } }
  // A restore has to remove what reads have cached.
  const gateway = { cache: { ttl: 60_000 } }
  const t = await testService({ config: { clients, gateway, backups: { schedules, ...location } } })
  /** As a superuser, whatever settings the database was given. */
  const asOperator = (text: string) =>
    withClient(ownSession(`${server?.superuserUrl.replace(/postgres$/, 'shop')}`, 15), (client) =>
      client.query(text),
    )
  const onShop = (text: string) => withClient(shopUrl, (client) => client.query(text))
  if (server)
    await onShop(`create table city (id int primary key, name text not null);
      insert into city select n, 'city ' || n from generate_series(1, 1000) n`)
  const events: [name: string, job: unknown][] = []
  t.service.kernel.events.subscribe((name, data) => 'job_id' in data && events.push([name, data.job_id]))
  return {
    t,
    shopUrl,
    asOperator,
    clients,
    onShop,
    events,
    ...jobsOf(t),
    ...locksOf(shopUrl, onShop),
  }
}

function jobsOf(t: TestService) {
  const drain = () => t.service.kernel.jobs.drain(t.service.handlers)
  const find = async (id: string) => (await t.admin.get(`/admin/backups/jobs/${id}`)).body.data
  const queued = (answer: Answer): string => {
    assert.equal(answer.status, 202, answer.text)
    return answer.body.data.job_id
  }
  return {
    drain,
    find,
    queued,
    /** Runs the queued job, and returns its row. */
    done: async (answer: Answer) => {
      const id = queued(answer)
      await drain()
      return find(id)
    },
    backUp: (client_name = 'shop') => t.admin.post('/admin/backups', { client_name, label: 'by hand' }),
    restore: (id: string, body: object = { client_name: 'shop', confirm: 'shop' }) =>
      t.admin.post(`/admin/backups/${id}/restore`, body),
  }
}

function locksOf(shopUrl: string, onShop: (text: string) => Promise<pg.QueryResult>) {
  return {
    cities: async () => (await onShop('select count(*)::int as n, sum(id)::int as sum from city')).rows[0],
    /** Holds a lock on the table, so that pg_dump or pg_restore waits for it. */
    async holding(lock: string, work: () => Promise<void>): Promise<void> {
      const client = new pg.Client({ connectionString: shopUrl })
      await client.connect()
      await client.query(`begin; lock table city in ${lock} mode`)
      await work().finally(() => client.end())
    },
    isWaiting: () =>
      onShop(
        `select 1 from pg_stat_activity where datname = current_database() and application_name like 'gatehouse backup%' and wait_event_type = 'Lock'`,
      ).then(({ rowCount }) => rowCount === 1),
  }
}
