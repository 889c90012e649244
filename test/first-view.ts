import type { BrowserContext, Request } from 'playwright-core'
import { untilLoaded } from './browser/loaded.ts'

/** What a browser with an empty cache loads until a screen of the console is shown. */
export type FirstView = {
  readonly requests: readonly Request[]
  /** Over the wire, headers included. */
  readonly bytes: number
}

/** The first view of an address, in a context that has none in its cache. */
export async function firstView(context: BrowserContext, address: string): Promise<FirstView> {
  const page = await context.newPage()
  const finished: Request[] = []
  page.on('requestfinished', (request) => finished.push(request))
  await page.goto(address, { waitUntil: 'networkidle' })
  await untilLoaded(page)
  const requests = finished.filter((request) => !OF_THE_EDITOR.test(request.url()))
  const sizes = await Promise.all(requests.map((request) => request.sizes()))
  const bytes = sizes.reduce((sum, size) => sum + size.responseBodySize + size.responseHeadersSize, 0)
  return { requests, bytes }
}

/** The editor of SQL is loaded once the screen is shown, where a text area is until then. */
const OF_THE_EDITOR = /\/(sql\/editor|packages\/(?!preact|htm)[^/]+)\.js$/
