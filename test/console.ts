import assert from 'node:assert/strict'
import { after } from 'node:test'
import axe from 'axe-core'
import type { Locator, Page } from 'playwright-core'
import { openBrowser, type Visit } from './browser/chromium.ts'
import { untilLoaded } from './browser/loaded.ts'
import { type Options, PASSWORD, type TestService, testService, type User } from './harness.ts'

/** The console of a new service in a browser, and an administrator with a password. */
export type Console = {
  readonly t: TestService
  /** The address of the console. */
  readonly at: string
  readonly root: User
  /** A page in a new profile. It is closed after the tests, which fail when the browser has complained. */
  visit(options?: Parameters<Awaited<ReturnType<typeof openBrowser>>['visit']>[0]): Promise<Visit>
  /** The same, signed in. */
  enter(user?: User, path?: string, options?: Parameters<Console['visit']>[0]): Promise<Visit>
  /** What the trail has of a target: each act, and whether the administrator did it. */
  trailOf(targetId: string): Promise<readonly (readonly [action: string, isByRoot: boolean])[]>
}

/** Chromium reports every answer that is no success. These are told to the person in the page. */
const ANSWERS = /^Failed to load resource: the server responded with a status of 4\d\d/
const OFFLINE = /^Failed to load resource: net::ERR_(INTERNET_DISCONNECTED|FAILED)/

export async function openConsole(options: Options = {}): Promise<Console> {
  const t = await testService(options)
  const browser = await openBrowser()
  const at = `${t.service.kernel.publicUrl()}/console`
  const root = await userOf(t, 'Root', 'admin')
  const visit: Console['visit'] = async (how) => {
    const opened = await browser.visit(how)
    after(() => assert.deepEqual(complaintsOf(opened), []))
    return opened
  }
  return {
    ...{ t, at, root, visit },
    async enter(user = root, path = '', how = {}) {
      const opened = await visit(how)
      await opened.page.goto(at + path)
      await signIn(opened.page, user)
      return opened
    },
    async trailOf(targetId) {
      const acts = await t.service.kernel.db
        .selectFrom('auditEvent')
        .select(['action', 'actorId'])
        .where('targetId', '=', targetId)
        .orderBy('id')
        .execute()
      return acts.map(({ action, actorId }) => [action, actorId === root.id] as const)
    },
  }
}

export const complaintsOf = ({ complaints }: Visit): readonly string[] =>
  complaints.filter((text) => !ANSWERS.test(text) && !OFFLINE.test(text))

/** A user with the password of the tests. */
export async function userOf(t: TestService, name: string, role: string): Promise<User> {
  const user = await t.signUp(name)
  const { db, coherence } = t.service.kernel
  await db.updateTable('user').set({ role, emailVerified: true }).where('id', '=', user.id).execute()
  await coherence.settle()
  return user
}

export async function signIn(page: Page, { email }: Pick<User, 'email'>): Promise<void> {
  await page.getByLabel('Email or username').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  // A narrow window hides it.
  await page.locator('#navigation').waitFor({ state: 'attached' })
}

/** Addresses of what a page asks for from now on. */
export function requestsOf(page: Page): readonly string[] {
  const asked: string[] = []
  page.on('request', (request) => void asked.push(request.url()))
  return asked
}

/** Moves to an element of a page by the Tab key, as far as it takes. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor()
  const focused = target.and(page.locator(':focus'))
  for (let count = 0; count < 60 && (await focused.count()) === 0; count++) await page.keyboard.press('Tab')
  assert.equal(await focused.count(), 1)
}

/** The body of an answer that a form shows, when all of it has come. Its status is shown before. */
export async function answerWith(page: Page, status: string): Promise<string> {
  await page.getByText(status).waitFor()
  await page.getByText('The answer goes on').waitFor({ state: 'detached' })
  return (await page.getByRole('region', { name: 'Body of the answer' }).textContent()) ?? ''
}

/** Whether the page can be used by those who do not see it, or see little, as far as a program can tell. */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await untilLoaded(page)
  await page.evaluate(axe.source)
  const found = (await page.evaluate('axe.run(document)')) as axe.AxeResults
  const violations = found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`,
  )
  assert.deepEqual(violations, [], what)
}

/** Whether nothing is beyond the right edge of the window. */
export async function expectNoOverflow(page: Page, what: string): Promise<void> {
  await untilLoaded(page)
  const [content, window] = (await page.evaluate(
    '[document.documentElement.scrollWidth, innerWidth]',
  )) as number[]
  assert.ok((content ?? 0) <= (window ?? 0), `${what}: ${content} px in ${window} px`)
}

/**
 * Whether nothing is lost at twice the size, for which half of the window is what zoom leaves to a layout: what the pointer reaches it still does,
 * behind the menu too, no text is cut off that was whole, and tables alone are scrolled sideways.
 */
export async function expectZoomable(page: Page, what: string): Promise<void> {
  await untilLoaded(page)
  const { width, height } = page.viewportSize() ?? { width: 1_280, height: 720 }
  const whole = (await page.evaluate(LOOK)) as Looked
  await page.setViewportSize({ width: width / 2, height: height / 2 })
  await expectNoOverflow(page, `${what} at 200 %`)
  const menu = page.locator('body:not(:has(dialog[open])) button.menu')
  // Without taking the focus.
  const isNarrow = await menu.isVisible()
  if (isNarrow) await menu.dispatchEvent('click')
  if (isNarrow) await page.locator('#navigation.open').waitFor()
  const zoomed = (await page.evaluate(LOOK)) as Looked
  if (isNarrow) await menu.dispatchEvent('click')
  await page.setViewportSize({ width, height })
  assert.ok(whole.reached.length > 1, what)
  const lost = whole.reached.filter((one) => !zoomed.reached.includes(one))
  const cut = zoomed.cut.filter((one) => !whole.cut.includes(one))
  assert.deepEqual({ lost, cut }, { lost: [], cut: [] }, `${what} at 200 %`)
}

/** What the pointer reaches, and what cuts off its content. */
type Looked = { readonly reached: readonly string[]; readonly cut: readonly string[] }

/** Elements are named by a number that they keep. A message that has just come goes by itself, and an input scrolls its text. */
const LOOK = `(() => {
  const names = (window.names ??= new Map())
  const nameOf = (one) => names.get(one) ?? names.set(one, names.size + ' ' + one.outerHTML.slice(0, 200)).get(one)
  const isReached = (one) => {
    one.scrollIntoView({ behavior: 'instant', block: 'center', inline: 'center' })
    const { left, top, width, height } = one.getClientRects()[0]
    const hit = document.elementFromPoint(left + width / 2, top + height / 2)
    return hit !== null && (one.contains(hit) || hit.closest('.messages') !== null || [...(one.labels ?? [])].includes(hit.closest('label')))
  }
  const isCut = (one) => {
    const { overflowX, overflowY } = getComputedStyle(one)
    const hides = (value) => value === 'hidden' || value === 'clip'
    return (hides(overflowX) && one.scrollWidth > one.clientWidth + 1) || (hides(overflowY) && one.scrollHeight > one.clientHeight + 1)
  }
  const all = [...(document.querySelector('dialog[open]') ?? document.body).querySelectorAll('*')]
  const seen = all.filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0)
  const controls = seen.filter((one) => one.matches('a[href], button:not(.menu), input, select, textarea, summary'))
  const gone = [...names.keys()].filter((one) => !one.isConnected)
  return { reached: [...controls.filter(isReached), ...gone].map(nameOf), cut: seen.filter((one) => !one.matches('input') && isCut(one)).map(nameOf) }
})()`
