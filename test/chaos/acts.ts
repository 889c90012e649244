import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { eventually } from '#test/embedded.ts'
import type { Page } from './page.ts'
import type { Act } from './plan.ts'
import { ROUTES } from './routes.ts'
import { STRUCTURES, TABLES } from './statements.ts'
import { allAnswer, makeLive, signIn, type World } from './world.ts'

/** A lock that is waited for longer fails its writer, as a deadlock does. */
const PATIENCE = `set lock_timeout = '500ms'; set statement_timeout = '5s'`

/** A lost race, and a service or a database that is gone, change nothing or something: both are what the fetch tells. */
export async function perform(world: World, act: Act, pages: readonly Page[]): Promise<void> {
  if (act.way === 'gateway') await world.ask('admin', act.method, act.path, act.body)
  if (act.way === 'session') await inSession(world, act.statements, act.waits)
  if (act.way === 'prepared') await prepared(world, act)
  if (act.way === 'copy') await copy(world, act)
  if (act.way === 'structure') {
    await inSession(world, [act.there])
    await sleep(act.wait)
    await inSession(world, [act.back])
  }
  if (act.way === 'rights') await RIGHTS[act.of](world, pages)
}

const inSession = (world: World, statements: readonly string[], waits: readonly number[] = []) =>
  withSession(world, async (client) => {
    for (const [index, statement] of statements.entries()) {
      await sleep(waits[index] ?? 0)
      await client.query(statement)
    }
  })

async function withSession(
  { databaseUrl }: World,
  work: (client: pg.Client) => Promise<void>,
): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(PATIENCE)
    await work(client)
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

let count = 0

async function prepared(world: World, { parts, wait }: Act & { way: 'prepared' }): Promise<void> {
  const names: string[] = []
  for (const { statements, ends } of parts) {
    // Its end stands in the name, for `settle`.
    const name = `chaos_${process.pid}_${++count}_${ends}`
    await inSession(world, ['begin', ...statements, `prepare transaction '${name}'`])
    // Also one that has failed: its session may have broken when it was prepared.
    names.unshift(name)
    await sleep(wait)
  }
  for (const name of names) await endPrepared(world, name)
}

/** Until it is ended: others wait for its locks, also across a crash. */
async function endPrepared(world: World, name: string): Promise<void> {
  const end = `${name.endsWith('commit') ? 'commit' : 'rollback'} prepared '${name}'`
  await eventually(async () => {
    if (await inSession(world, [end])) return true
    const left = await world.sql(`select from pg_prepared_xacts where gid = '${name}'`).catch(() => undefined)
    return left?.length === 0
  })
}

const copy = (world: World, { into, rows }: Act & { way: 'copy' }): Promise<boolean> =>
  withSession(
    world,
    (client) =>
      new Promise((resolve, reject) => {
        client.once('error', reject)
        client.once('end', () => reject(new Error('the session has ended')))
        client.query({
          submit: (connection: pg.Connection) => void connection.query(`copy ${into} from stdin`),
          handleCopyInResponse(connection: CopyConnection) {
            connection.sendCopyFromChunk(Buffer.from(rows))
            connection.endCopyFrom()
          },
          handleCommandComplete() {},
          handleReadyForQuery: () => resolve(),
          handleError: reject,
        } as pg.Submittable)
      }),
  )

/** As pg has them, and its types do not. */
type CopyConnection = { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void }

type Rights = (world: World, pages: readonly Page[]) => Promise<void>

/** Takes rights from a caller. A row that the caller would have seen before is there from the answer on until rights come back. */
const RIGHTS: Readonly<Record<(Act & { way: 'rights' })['of'], Rights>> = {
  async organization(world, pages) {
    const [first, second] = world.people.organizations
    const [from, to] = count++ % 2 === 0 ? [first, second] : [second, first]
    if (await activates(world, to)) await withLateRow(world, ofCaller(pages, 'cem'), LATE_ROWS.task(from))
  },
  async session(world, pages) {
    const signedOut = await world.ask('dan', 'POST', '/api/auth/sign-out', {})
    if (signedOut?.status === 200)
      await withLateRow(world, ofCaller(pages, 'dan'), LATE_ROWS.item(world.people.dan))
    await signIn(world, 'dan')
  },
  async key(world, pages) {
    const taken = await isActive(world, false)
    if (taken?.status === 200) await withLateRow(world, ofCaller(pages, 'reader'), LATE_ROWS.log())
    await isActive(world, true)
  },
  async route(world, pages) {
    const taken = await isOpen(world, false)
    if (taken?.status === 200) await withLateRow(world, throughRoute(pages), LATE_ROWS.gift())
    await isOpen(world, true)
  },
}

const isOpen = ({ ask }: World, is_active: boolean) =>
  ask('operator', 'PATCH', `/admin/public-routes/${ROUTES.gifts.route_key}`, { is_active })

const throughRoute = (pages: readonly Page[]) =>
  pages.filter(({ subscriber }) => subscriber.route === ROUTES.gifts.route_key)

const isActive = ({ ask, callers }: World, is_active: boolean) =>
  ask('operator', 'PATCH', `/admin/api-keys/${callers.reader.id}`, { is_active })

const ofCaller = (pages: readonly Page[], caller: string) =>
  pages.filter(({ subscriber }) => subscriber.caller === caller)

type LateRow = { readonly table: string; readonly insert: (text: string) => string }

/** With keys that no other writer uses. */
const LATE_ROWS = {
  task: (organization: string) =>
    lateRow('task', `(id, organization_id, n, text) values (${++count + 1_000}, '${organization}', 9,`),
  item: (owner: string) => lateRow('item', `(id, owner, n, text) values (${++count + 1_000}, '${owner}', 9,`),
  log: () => lateRow('log', '(n, text) values (9,'),
  gift: () => lateRow('gift', `(id, owner, n, text) values (${++count + 1_000}, 'eve', 9,`),
}

const lateRow = (table: string, values: string): LateRow => ({
  table,
  insert: (text) => `insert into ${table} ${values} '${text}')`,
})

/** Longer than a service waits before it looks for writes past the gateway. */
const LATE = 350

async function withLateRow(world: World, pages: readonly Page[], { table, insert }: LateRow): Promise<void> {
  const text = `late-${++count}`
  for (const page of pages) page.forbid(text)
  await inSession(world, [insert(text)])
  await sleep(LATE)
  // Its session may have broken after the commit.
  for (let tries = 0; tries < 100; tries++) {
    if (await inSession(world, [`delete from ${table} where text = '${text}'`])) return
    await sleep(50)
  }
}

async function activates({ ask, callers }: World, organizationId: string): Promise<boolean> {
  const { authorization = '' } = callers.cem.headers
  const path = '/api/auth/organization/set-active'
  return (await ask({ authorization }, 'POST', path, { organizationId }))?.status === 200
}

/** Everything that was begun is ended, and the structure is what it was. */
export async function settle(world: World): Promise<void> {
  // First, since services wait for their locks.
  const left = await world.sql('select gid from pg_prepared_xacts where database = current_database()')
  for (const { gid } of left as { gid: string }[]) await endPrepared(world, gid)
  await allAnswer(world)
  for (const { back, isThere } of STRUCTURES) {
    const [found] = await world.sql(`select ${isThere} as "isThere"`)
    for (let attempt = 0; found?.isThere === true && !(await inSession(world, [back])); attempt++)
      assert.ok(attempt < 20, `cannot be undone: ${back}`)
  }
  await eventually(() =>
    makeLive(world).then(
      () => true,
      () => false,
    ),
  )
  await isActive(world, true)
  await isOpen(world, true)
}

/** As at the beginning. */
export async function empty(world: World): Promise<void> {
  await settle(world)
  const { ada, bea, organizations } = world.people
  await world.sql(`truncate ${TABLES.join()}, team`)
  await world.sql(`insert into team values ('${ada}', 1), ('${bea}', 2)`)
  assert.ok(await activates(world, organizations[0]))
}
