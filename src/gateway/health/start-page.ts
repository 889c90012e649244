import type { Config } from '#kernel/config/config.ts'
import { html } from '#kernel/html.ts'
import type { Page } from '#kernel/http/page.ts'

/** The page for users who open the service's URL in a browser. */
export const startPage = ({ docs, auth }: Config): Page => ({
  title: 'The service is running',
  content: [
    html`<p>Gatehouse signs users in and serves data to applications. They call it over HTTP; this page has no functions.</p>`,
    html`<p>Authentication is at <code>${auth.base_path}</code>, the data gateway at <code>/gateway</code> and <code>/data</code>.</p>`,
    docs.enabled
      ? html`<p><a href="/docs">API reference</a> · <a href="/openapi.json">OpenAPI document</a> · <a href="/health/ready">Readiness</a></p>`
      : html`<p><a href="/health/ready">Readiness</a></p>`,
  ],
})
