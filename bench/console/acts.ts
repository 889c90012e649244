import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { untilLoaded } from '#test/browser/loaded.ts'
import type { Opens } from './screens.ts'

const SLOWER = 4

/** The longest time from an act to the next paint that the browser saw; 0: less than the 16 ms that it tells of. */
export type Paint = { readonly name: string; readonly ms: number }

/** Event Timing: each press of a key and each click, from its beginning to the frame that shows what it did. */
const OBSERVE = `window.paints = [];
  new PerformanceObserver((list) => {
    for (const { interactionId, duration } of list.getEntries()) if (interactionId > 0) window.paints.push(duration)
  }).observe({ type: 'event', durationThreshold: 16 })`
const TAKE = 'Math.max(0, ...window.paints.splice(0))'

/** Typing, sorting, opening and editing, on a processor that is slower. */
export async function paints(open: Opens, at: string): Promise<readonly Paint[]> {
  const context = await open()
  const page = await context.newPage()
  const measured: Paint[] = []
  const act = async (name: string, work: () => Promise<unknown>) => {
    await work()
    await untilLoaded(page)
    // An entry comes some time after its frame.
    await sleep(1_000)
    measured.push({ name, ms: (await page.evaluate(TAKE)) as number })
  }
  await goTo(page, `${at}/users`)
  const { send } = await context.newCDPSession(page).then((cdp) => ({ send: cdp.send.bind(cdp) }))
  await send('Emulation.setCPUThrottlingRate', { rate: SLOWER })
  const press = (text: string) => page.keyboard.type(text, { delay: 80 })
  await act('Users: a search is typed', async () => {
    await page.getByRole('searchbox').click()
    await press('ab12')
  })
  await act('Users: the list is sorted', () => page.getByRole('button', { name: 'Name' }).click())
  await act('Users: a user is opened', () => page.locator('tbody a').first().click())
  await goTo(page, `${at}/data?client=default&table=growth_rows`)
  const cell = page.locator('td[data-at="1:2"]')
  await act('Rows: they are sorted', () => page.getByRole('button', { name: /^id/ }).click())
  await act('Rows: a filter is typed', async () => {
    await page.getByLabel('Value').click()
    await press('1234')
  })
  await act('Rows: the whole row is opened', async () => {
    await cell.click()
    await page.keyboard.press('Shift+Enter')
  })
  await page.keyboard.press('Escape')
  await act('Rows: a cell is opened, typed in and saved', async () => {
    await cell.click()
    await page.keyboard.press('Enter')
    await press('edited')
    await page.keyboard.press('Enter')
  })
  await context.close()
  return measured
}

async function goTo(page: Page, address: string): Promise<void> {
  await page.goto(address, { waitUntil: 'networkidle' })
  await page.evaluate(OBSERVE)
}
