import { existsSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { type Browser, type BrowserContext, type ConsoleMessage, chromium, type Page } from 'playwright-core'

const PROGRAM = process.env.CHROMIUM ?? '/usr/bin/chromium'

/** The `skip` option for tests in a browser: the reason if Chromium is missing, otherwise false. */
export const withoutBrowser: string | false = existsSync(PROGRAM)
  ? false
  : `there is no Chromium at ${PROGRAM}: apt-get install chromium, or set CHROMIUM to its path`

export type Visit = {
  readonly page: Page
  /** Errors and warnings of the browser's console: blocked by a policy, failed scripts, failed requests. */
  readonly complaints: readonly string[]
}

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: PROGRAM,
    headless: true,
    chromiumSandbox: false,
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })

export type TestBrowser = {
  visit(options?: VisitOptions): Promise<Visit>
  /** Ids of all of its processes. */
  processes(): Promise<readonly number[]>
}

/** Starts a browser with a new profile for each visit. It is closed after the file's tests. */
export async function openBrowser(): Promise<TestBrowser> {
  const browser = await launchBrowser()
  after(() => browser.close())
  return {
    async visit(options = {}) {
      const context = await browser.newContext(options)
      after(() => context.close())
      return watched(context)
    },
    async processes() {
      const session = await browser.newBrowserCDPSession()
      const { processInfo } = await session.send('SystemInfo.getProcessInfo')
      await session.detach()
      return processInfo.map(({ id }) => id)
    },
  }
}

type VisitOptions = Parameters<Browser['newContext']>[0]

async function watched(context: BrowserContext): Promise<Visit> {
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message: ConsoleMessage) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => void complaints.push(String(error)))
  return { page, complaints }
}

/** Serves an application on another origin. `visited` lists the requested paths with their referrers. */
export async function otherOrigin(
  answer: RequestListener = (_request, response) => {
    response.setHeader('content-type', 'text/html').end('<title>App</title><h1>App</h1>')
  },
): Promise<{ readonly origin: string; readonly visited: readonly string[] }> {
  const visited: string[] = []
  const server = createServer((request, response) => {
    if (request.url === '/favicon.ico') return void response.writeHead(204).end()
    visited.push(`${request.url} ${request.headers.referer ?? 'without referrer'}`)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const { port } = server.address() as AddressInfo // the address of a TCP server
  return { origin: `http://127.0.0.1:${port}`, visited }
}
