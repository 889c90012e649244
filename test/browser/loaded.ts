import type { Page } from 'playwright-core'

/**
 * Waits until a screen of the console has its heading, and all that it says to be loading has come. `networkidle` tells nothing of a screen that
 * a link has opened: the page is idle since it was loaded. A dialog hides the heading.
 */
export const untilLoaded = (page: Page): Promise<void> =>
  page.locator('html:has(h1):not(:has(.loading, [aria-busy=true]))').waitFor({ state: 'attached' })
