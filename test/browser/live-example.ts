import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '#test/embedded.ts'
import { PASSWORD } from '#test/harness.ts'
import type { TestBrowser } from './chromium.ts'

/** Runs the server of `examples/live/`, as its README says. */
export async function serveExample(port: number, more: Readonly<Record<string, string>>): Promise<void> {
  const server = spawn(process.execPath, ['examples/live/serve.mjs'], {
    cwd: new URL('../..', import.meta.url),
    env: { ...process.env, PORT: String(port), ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(() => server.kill())
  await once(server.stdout, 'data')
}

/** Opens the page as a new user. */
export async function newVisitor(browser: TestBrowser, app: string, name: string): Promise<Page> {
  const { page } = await browser.visit()
  await page.goto(app)
  await page.getByPlaceholder('Name', { exact: true }).fill(name)
  await page.getByPlaceholder('Email').fill(`${name}@example.com`)
  await page.getByPlaceholder('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByText(`Signed in as ${name}`).waitFor()
  return page
}

export async function add(page: Page, text: string): Promise<void> {
  await page.getByPlaceholder('Text').fill(text)
  await page.getByRole('button', { name: 'Add a card' }).click()
}

export const cards = (page: Page): Promise<string[]> => page.locator('#cards span').allTextContents()

export const shows = (page: Page, ...texts: string[]): Promise<void> =>
  eventually(async () => (await cards(page)).join() === texts.join())
