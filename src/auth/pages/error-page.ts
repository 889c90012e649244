import { html } from '#kernel/html.ts'
import type { Page } from '#kernel/http/page.ts'
import { AUTH_CODES, REDIRECT_CODES } from '../errors.ts'
import { pageText } from './texts.ts'

/** Shows known codes only, so that a link cannot put text of its own on the page. */
export function errorPage(error: string | undefined): Page {
  const code = error?.toUpperCase() ?? ''
  const known = [AUTH_CODES, REDIRECT_CODES].find((codes) => Object.hasOwn(codes, code))?.[code]
  return {
    title: pageText('failedTitle'),
    content: [
      ...(known === undefined ? [] : [html`<p>${known[1]}.</p>`]),
      html`<p>${pageText('failedText')}</p>`,
      ...(known === undefined ? [] : [html`<p><code>${code}</code></p>`]),
    ],
  }
}
