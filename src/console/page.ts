import { hash } from 'node:crypto'
import type { Config } from '#kernel/config/config.ts'
import { html } from '#kernel/html.ts'
import { hasTestReceiver } from '#kernel/http/test-receiver.ts'
import { hasDevMail } from '#kernel/mail/dev-page.ts'
import { VERSION } from '#kernel/version.ts'
import { type Assets, IMPORTS } from './assets.ts'

type ConsolePage = { readonly text: string; readonly headers: Readonly<Record<string, string>> }

/** The module that begins. */
const ENTRY = 'shell.js'

/**
 * The page of the console at a path. Everything that it shows comes from the API, so it is the same for everyone. It differs by the screen, whose
 * modules it loads early: each would wait for the one that imports it.
 */
export function consolePages(config: Config, assets: Assets): (path: string) => ConsolePage {
  const made = new Map<string, ConsolePage>()
  return (path) => {
    const screen = screenOf(path, assets)
    const page = made.get(screen) ?? consolePage(config, assets, screen)
    made.set(screen, page)
    return page
  }
}

/** The module of `/console/users/…` is `screens/users.js`. Only files that are there are named. */
function screenOf(path: string, { names }: Assets): string {
  const [, name = 'home'] = /^\/console\/([a-z-]+)/.exec(path) ?? []
  const file = `screens/${name}.js`
  return names.includes(file) ? file : ENTRY
}

function consolePage(config: Config, { base, withImports }: Assets, screen: string): ConsolePage {
  const importMap = JSON.stringify({
    imports: Object.fromEntries(Object.entries(IMPORTS).map(([name, file]) => [name, `${base}/${file}`])),
  })
  const facts = JSON.stringify({
    auth: config.auth.base_path,
    version: VERSION,
    docs: config.docs.enabled,
    mail: hasDevMail(config),
    receiver: hasTestReceiver(config),
    providers: providersOf(config),
  })
  const preloads = withImports([ENTRY, screen]).map(
    (name) => html`<link rel="modulepreload" href="${`${base}/${name}`}">`,
  )
  const { html: text } = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="gatehouse" content="${facts}">
<title>Gatehouse</title>
<link rel="icon" href="${`${base}/icon.svg`}">
<link rel="stylesheet" href="${`${base}/console.css`}">
<script type="importmap">${{ html: importMap }}</script>
${preloads}
<script type="module" src="${`${base}/${ENTRY}`}"></script>
<div id="app"></div>
<noscript>The console needs JavaScript. The command <code>gatehouse</code> and the API do without.</noscript>
</html>
`
  return { text, headers: { 'content-security-policy': policyFor(importMap) } }
}

/** They may add a user, which needs the solution of a captcha where there is one. The console shows none. */
const providersOf = ({ auth: { social, captcha } }: Config): readonly string[] =>
  captcha.provider === undefined ? Object.keys(social.providers) : []

/** Nothing runs but files of this service and the import map. Strings become no code and no markup (Trusted Types). */
const policyFor = (importMap: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "font-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "require-trusted-types-for 'script'",
  ].join('; ')
