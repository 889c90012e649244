import type { Browser, BrowserContext, Request } from 'playwright-core'
import { firstView } from '#test/first-view.ts'
import { ORGANIZATION_ID, SIGNED_UP } from '../growth/fill.ts'
import { PASSWORD } from '../loads.ts'
import { median } from '../statistics.ts'

const USER = '00000001-0000-7000-8000-000000000bb8'
const TABLE = '/data?client=default&table=growth_rows'

/** Names of screens, and their paths in the console. */
export const SCREENS: Readonly<Record<string, string>> = {
  Home: '',
  Users: '/users',
  'Users, searched': '/users?search=ab12',
  'One user': `/users/${USER}`,
  Organizations: '/organizations',
  'One organization': `/organizations/${ORGANIZATION_ID}`,
  'Data: rows': TABLE,
  'Data: rows, filtered': `${TABLE}&where=${encodeURIComponent('[["kind","eq","7"]]')}`,
  'Data: rows, by a column without an index': `${TABLE}&sort=name`,
  'Data: structure': `${TABLE}&view=structure`,
  'Data: policies': `${TABLE}&view=policies`,
  'Data: indexes': `${TABLE}&view=indexes`,
  SQL: '/sql',
  API: '/api',
  Keys: '/keys',
  Pipelines: '/pipelines',
  Webhooks: '/webhooks',
  'Public routes': '/public-routes',
  Backups: '/backups',
  Mail: '/mail',
  Audit: '/audit',
  Settings: '/settings',
}

export type Opens = () => Promise<BrowserContext>

/** Signs in, and returns the cookies. */
export async function enter(browser: Browser, at: string) {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(at)
  await page.getByLabel('Email or username').fill(`${SIGNED_UP}@example.com`)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('#navigation').waitFor({ state: 'attached' })
  const state = await context.storageState()
  await context.close()
  return state
}

/** Lists whose number of rows is estimated, or counted up to a limit, until one asks. */
const COUNTED = ['Users', 'Organizations', 'One organization', 'Data: rows', 'Data: rows, filtered', 'Audit']

const VISITS = 3

type Visited = {
  readonly requests: number
  /** Over the wire, headers included. */
  readonly bytes: number
  /** The slowest of the calls, which are all but the files of the console. */
  readonly slowest: string
  readonly ms: number
  /** Calls that count every row. */
  readonly exact: readonly string[]
}

/** The middle one of some first views, by its slowest call. Each has a new profile, whose cache is empty. */
export async function visits(open: Opens, address: string): Promise<Visited> {
  const all: Visited[] = []
  for (let count = 0; count < VISITS; count++) all.push(await visit(open, address))
  const middle = median(all.map(({ ms }) => ms))
  return all.find(({ ms }) => ms === middle) ?? (all[0] as Visited)
}

async function visit(open: Opens, address: string): Promise<Visited> {
  const context = await open()
  const { requests, bytes } = await firstView(context, address)
  const calls = requests.filter((request) => !new URL(request.url()).pathname.startsWith('/console'))
  const [slowest] = calls.toSorted((a, b) => msOf(b) - msOf(a))
  await context.close()
  return {
    requests: requests.length,
    bytes,
    slowest: slowest === undefined ? '–' : nameOf(slowest),
    ms: slowest === undefined ? 0 : msOf(slowest),
    exact: calls.filter(countsExactly).map(nameOf),
  }
}

/** The time of an exact count, by the screen whose button asks for it. */
export async function counts(open: Opens, at: string): Promise<ReadonlyMap<string, number>> {
  const measured = new Map<string, number>()
  for (const name of COUNTED) {
    const context = await open()
    const page = await context.newPage()
    await page.goto(`${at}${SCREENS[name]}`, { waitUntil: 'networkidle' })
    const button = page.getByRole('button', { name: 'Count exactly' })
    const [request] = (await button.isVisible())
      ? await Promise.all([
          page.waitForEvent('requestfinished', { predicate: countsExactly, timeout: 0 }),
          button.click(),
        ])
      : []
    if (request !== undefined) measured.set(name, msOf(request))
    await context.close()
  }
  return measured
}

/** From the last byte of the request to the first one of the answer. */
const msOf = (request: Request): number => {
  const { requestStart, responseStart } = request.timing()
  return responseStart - requestStart
}

const nameOf = (request: Request): string => `${request.method()} ${new URL(request.url()).pathname}`

const countsExactly = (request: Request): boolean =>
  /count=exact/.test(request.url()) || /"count":\s*"exact"/.test(request.postData() ?? '')
