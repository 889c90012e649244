import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { luminance } from '../config/colours.ts'
import type { Config } from '../config/config.ts'
import { type Html, html } from '../html.ts'
import type { Kernel } from '../kernel.ts'

/** The content of a page, which needs no script. */
export type Page = {
  readonly title: string
  readonly content: readonly Html[]
  /** For a page with a form: the target that its answer may redirect to. */
  readonly form?: { readonly leadsTo: string | undefined }
}

/** Whether the caller accepts HTML, as browsers do; programs get JSON. */
export const wantsPage = ({ headers }: FastifyRequest): boolean =>
  headers.accept?.toLowerCase().includes('text/html') === true

export function sendPage(kernel: Kernel, reply: FastifyReply, page: Page, status = 200): FastifyReply {
  const style = styleOf(kernel.config)
  return reply
    .code(status)
    .headers(headersOf(kernel, page, style))
    .type('text/html; charset=utf-8')
    .serializer((text: string) => text)
    .send(written(kernel, page, style))
}

/**
 * Without `same-origin`, browsers would send `Origin: null` with the form, and the request would be refused. `form-action`
 * also applies to the redirect after the form, so it names the origin of the callback.
 */
function headersOf(kernel: Kernel, { form }: Page, style: string): Record<string, string> {
  const { logo_url } = kernel.config.auth.pages
  const leadsTo = URL.parse(form?.leadsTo ?? '')?.origin
  const mayGoTo = leadsTo === undefined ? "'self'" : `'self' ${leadsTo}`
  return {
    'content-security-policy': [
      "default-src 'none'",
      `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
      ...(logo_url === undefined ? [] : [`img-src ${new URL(logo_url).origin}`]),
      `form-action ${form === undefined ? "'none'" : mayGoTo}`,
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    ...(form !== undefined && { 'referrer-policy': 'same-origin' }),
  }
}

function written(kernel: Kernel, { title, content }: Page, style: string): string {
  const { pages } = kernel.config.auth
  const service = pages.name ?? new URL(kernel.publicUrl()).hostname
  const logo = pages.logo_url === undefined ? undefined : html`<img src="${pages.logo_url}" alt="">`
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · ${service}</title>
<style>${{ html: style }}</style>
<main>
<header>${logo}<span>${service}</span></header>
<h1>${title}</h1>
${content}
</main>
</html>
`.html
}

/** The accent is a colour in hexadecimal digits, and the only text of the configuration in the style. */
function styleOf({ auth }: Config): string {
  const { accent } = auth.pages
  const isDark = 1.05 / (luminance(accent) + 0.05) >= 4.5
  return `
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --text: #1c2230; --soft: #5b6475; --line: #d4d8e0; --field: #fff; --bad: #b42318; --accent: ${accent}; --on-accent: ${isDark ? '#fff' : '#111'} }
@media (prefers-color-scheme: dark) {
  :root { --page: #11141a; --card: #1a1f28; --text: #e8ebf1; --soft: #a2abbc; --line: #343c4a; --field: #12161d; --bad: #ff8a80 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, sans-serif }
main { width: 100%; max-width: 27rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px; overflow-wrap: anywhere }
header { display: flex; align-items: center; gap: .6rem; margin-bottom: 1.5rem; color: var(--soft); font-size: .9rem; font-weight: 600 }
header img { height: 2rem; max-width: 10rem; object-fit: contain }
h1 { margin: 0 0 .75rem; font-size: 1.4rem; line-height: 1.25 }
p { margin: 0 0 1rem }
form { margin: 1.25rem 0 0 }
label { display: block; margin: 0 0 .35rem; font-size: .9rem; font-weight: 600 }
input { width: 100%; margin: 0 0 1rem; padding: .6rem .75rem; border: 1px solid var(--line); border-radius: 8px; background: var(--field); color: inherit; font: inherit }
button { width: 100%; padding: .7rem 1rem; border: 0; border-radius: 8px; background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; cursor: pointer }
button.soft { border: 1px solid var(--line); background: none; color: var(--soft) }
button:hover { filter: brightness(1.08) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
details { margin: 1.25rem 0 0; padding: 1.25rem 0 0; border-top: 1px solid var(--line) }
summary { color: var(--soft); cursor: pointer }
details p { margin-top: 1rem }
article { margin: 0 0 1.5rem; border-top: 1px solid var(--line) }
h2 { margin: 1rem 0 .25rem; font-size: 1.1rem }
pre { margin: 0; white-space: pre-wrap; font: inherit }
a { color: inherit }
code, .soft { color: var(--soft) }
.bad { color: var(--bad); font-weight: 600 }
:is(main, details) > :last-child { margin-bottom: 0 }
`
}
