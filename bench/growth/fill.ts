import { hash } from 'node:crypto'
import type pg from 'pg'
import { showProgress } from '#cli/progress.ts'
import { withClient } from '#test/database.ts'
import { idOf } from '#test/scale/fill.ts'
import type { Bench } from '../scenario.ts'

/** Every user's name has an own part in hexadecimal digits. */
export const partOf = (number: number): string => hash('md5', `${number}`).slice(2, 10)
export const emailOf = (number: number): string => `${partOf(number)}.${number}@growth.example`
const PART = 'substr(md5(n::text), 3, 8)'

/** Tokens have 43 characters. */
const TOKEN = 'growth-token'.padEnd(43 - 9, '-')
export const tokenOf = (number: number): string => `${TOKEN}${String(number).padStart(9, '0')}`

const SECRET = 'A'.repeat(43)
const SALT = Buffer.alloc(16)
const SECRET_HASH = hash('sha256', `${SALT.toString('base64url')}:${SECRET}`)
const publicIdOf = (number: number): string => number.toString(16).padStart(16, '0')
export const keyOf = (number: number): string => `svc_${publicIdOf(number)}.${SECRET}`

/** Under which the caches have them (kernel/db/coherence.ts). */
export const TAGS = {
  session: (number: number) => `session:00000003-0000-7000-8000-${number.toString(16).padStart(12, '0')}`,
  key: (number: number) => `api_key:${publicIdOf(number)}`,
} as const

/** The name of the user who is signed up, whose password all others get. */
export const SIGNED_UP = 'root'

const BANNED = 3
export const isBanned = (number: number): boolean => number % 50 === BANNED

export const ORGANIZATION_ID = '00000007-0000-7000-8000-000000000001'

/** The largest number of them; of the others there are as many as the run has rows. */
export const MOST = { keys: 100_000, webhooks: 10_000 } as const

const MADE = `'2026-01-01'::timestamptz + n * interval '1 second'`

/** Rows with the numbers n, by table. */
const CONTROL: Readonly<Record<string, string>> = {
  user: `insert into service."user" (id, name, email, email_verified, role, banned, created_at, updated_at)
    select ${idOf(1, 'n')}, 'User ' || ${PART}, ${PART} || '.' || n || '@growth.example', n % 10 > 0,
      case when n % 25 = 0 then 'support' else 'user' end, n % 50 = ${BANNED}, ${MADE}, ${MADE}`,
  account: `insert into service.account (id, user_id, provider_id, account_id, password, created_at, updated_at)
    select ${idOf(2, 'n')}, ${idOf(1, 'n')}, 'credential', ${idOf(1, 'n')}::text,
      (select a.password from service.account a join service."user" u on u.id = a.user_id where u.email = '${SIGNED_UP}@example.com'),
      ${MADE}, ${MADE}`,
  session: `insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
    select ${idOf(3, 'n')}, sha256(convert_to('${TOKEN}' || lpad(n::text, 9, '0'), 'utf8')), ${idOf(1, 'n')},
      now() + interval '7 days', now(), now(), true`,
  member: `insert into service.member (id, organization_id, user_id, role, created_at)
    select ${idOf(8, 'n')}, '${ORGANIZATION_ID}', ${idOf(1, 'n')}, case when n = 1 then 'owner' else 'member' end, ${MADE}`,
  audit_event: `insert into service.audit_event (id, occurred_at, actor_id, action, target_type, target_id, outcome, count, details)
    select ${idOf(5, 'n')}, ${MADE}, ${idOf(1, 'n')}::text, 'user.signed_in', 'user', ${idOf(1, 'n')}::text, 'success', 1, '{}'`,
  webhook_event: `insert into service.webhook_event (id, route_key, body, created_at)
    select ${idOf(6, 'n')}, 'gateway_insert', '{}', now()`,
  webhook_delivery: `insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
    select ${idOf(9, 'n')}, (select id from service.webhook order by created_at limit 1), ${idOf(6, 'n')}, now() + interval '1 day', now()`,
}

const KEYS = `insert into service.api_key (id, public_id, name, client_name, rights, salt, secret_hash, created_at, updated_at)
  select ${idOf(4, 'n')}, lpad(to_hex(n), 16, '0'), 'grown', 'default', '{*}', '\\x${SALT.toString('hex')}', '\\x${SECRET_HASH}', now(), now()`

/** Copies of the one whose table is another. Their trigger tells the service. */
const WEBHOOKS = `insert into service.webhook (id, client_name, table_name, route_keys, url, sealed_secret, timeout_ms, created_at, updated_at)
  select gen_random_uuid(), w.client_name, w.table_name, w.route_keys, w.url, w.sealed_secret, w.timeout_ms, now(), now()
  from (select * from service.webhook order by created_at limit 1) w,`

export const ROWS_TABLE = `create table growth_rows (id int primary key, kind int not null, name text not null, price numeric(12,2), created_at timestamptz);
create index on growth_rows (kind, id)`
const ROWS = `insert into growth_rows select n, n % 40, 'name ' || n, n * 1.25, now()`

const FIRST = `insert into service.organization (id, name, slug, created_at, updated_at)
  values ('${ORGANIZATION_ID}', 'Growth', 'growth', now(), now())`

const STEP = 50_000

/** Rows with the numbers after `from`, up to `to`. As a superuser without triggers and references, which take most of the time. */
export async function grow(
  { server, service }: Pick<Bench, 'server' | 'service'>,
  from: number,
  to: number,
): Promise<void> {
  const control = Object.assign(new URL(server.url), { pathname: new URL(service.controlUrl).pathname }).href
  const progress = await showProgress((to - from) * (Object.keys(CONTROL).length + 1))
  const insert = async (client: pg.Client, statement: string, most: number, advance = 0) => {
    for (let first = from + 1; first <= Math.min(to, most); first += STEP) {
      const last = Math.min(to, most, first + STEP - 1)
      const ends = statement.endsWith(',') ? '' : 'from'
      await client.query(`${statement} ${ends} generate_series(${first}, ${last}) as n`)
      progress.advance((last - first + 1) * advance)
    }
  }
  await withClient(control, async (client) => {
    await client.query('set session_replication_role = replica')
    if (from === 0) await client.query(FIRST)
    for (const statement of Object.values(CONTROL)) await insert(client, statement, to, 1)
    await insert(client, KEYS, MOST.keys)
    await client.query(`update service.organization set member_count = ${to} where id = '${ORGANIZATION_ID}'`)
    await client.query('set session_replication_role = origin')
    await insert(client, WEBHOOKS, MOST.webhooks)
    await client.query('vacuum (analyze)')
  })
  await withClient(service.databaseUrl, async (client) => {
    await insert(client, ROWS, to, 1)
    await client.query('vacuum (analyze) growth_rows')
  })
  // Otherwise what was filled would be written while requests are measured.
  await withClient(server.url, (client) => client.query('checkpoint'))
  progress.end()
}

/** As the triggers do after a change. */
export const dropFromCaches = (controlUrl: string, tags: readonly string[]): Promise<void> =>
  withClient(controlUrl, async (client) => {
    await client.query(`select pg_notify('gatehouse', tag) from unnest($1::text[]) as tag`, [tags])
  })
