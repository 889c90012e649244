import { html } from '../../html.js'

/** How a receiver checks a request. */
export const SignatureHelp = () =>
  html`<p class="soft signature">Signed by <a href="https://www.standardwebhooks.com" target="_blank" rel="noopener">Standard Webhooks</a>: <code>webhook-signature</code> holds <code>v1,</code> and the base64 of HMAC-SHA256 over <code>webhook-id.webhook-timestamp.body</code>, with the bytes that the secret has in base64 after <code>whsec_</code>.</p>`
