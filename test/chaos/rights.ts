import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from './page.ts'
import type { Act } from './plan.ts'
import { ROUTES } from './routes.ts'
import { inSession } from './sessions.ts'
import { signIn, type World } from './world.ts'

type Rights = (world: World, pages: readonly Page[]) => Promise<void>

let count = 0

/** Takes rights from a caller. A row that the caller would have seen before is there from the answer on until rights come back. */
export const RIGHTS: Readonly<Record<(Act & { way: 'rights' })['of'], Rights>> = {
  async organization(world, pages) {
    const [first, second] = world.people.organizations
    const [from, to] = count++ % 2 === 0 ? [first, second] : [second, first]
    if (await activates(world, to)) await withLateRow(world, ofCaller(pages, 'cem'), LATE_ROWS.task(from))
  },
  async membership(world, pages) {
    const [organizationId] = world.people.organizations
    const { headers, id } = world.callers.cem
    if (!(await activates(world, organizationId))) return
    const left = await world.ask(headers, 'POST', '/api/auth/organization/leave', { organizationId })
    if (left?.status === 200) await withLateRow(world, ofCaller(pages, 'cem'), LATE_ROWS.task(organizationId))
    await world.join(id, organizationId)
    await activates(world, organizationId)
  },
  async ban(world, pages) {
    const userId = world.people.dan
    await signIn(world, 'root')
    const banned = await world.ask('root', 'POST', '/api/auth/admin/ban-user', { userId })
    assert.equal(banned?.status, 200, banned?.text ?? 'no answer')
    await withLateRow(world, ofCaller(pages, 'dan'), LATE_ROWS.item(userId))
    await world.ask('root', 'POST', '/api/auth/admin/unban-user', { userId })
    await signIn(world, 'dan')
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

export const isOpen = ({ ask }: World, is_active: boolean) =>
  ask('operator', 'PATCH', `/admin/public-routes/${ROUTES.gifts.route_key}`, { is_active })

const throughRoute = (pages: readonly Page[]) =>
  pages.filter(({ subscriber }) => subscriber.route === ROUTES.gifts.route_key)

export const isActive = ({ ask, callers }: World, is_active: boolean) =>
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

export async function activates({ ask, callers }: World, organizationId: string): Promise<boolean> {
  const { authorization = '' } = callers.cem.headers
  const path = '/api/auth/organization/set-active'
  return (await ask({ authorization }, 'POST', path, { organizationId }))?.status === 200
}
