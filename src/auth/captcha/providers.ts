import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

type Captcha = Config['auth']['captcha']
type ProviderName = Exclude<Captcha['provider'], 'altcha' | undefined>

type Provider = {
  readonly url: string
  /** Members of its answer that are judged, beside `success`. */
  readonly tells: readonly ('hostname' | 'action' | 'score')[]
  readonly takesSiteKey?: boolean
}

/**
 * All take the same form and answer JSON with `success`:
 * developers.cloudflare.com/turnstile/get-started/server-side-validation, docs.hcaptcha.com/#verify-the-user-response-server-side,
 * developers.google.com/recaptcha/docs/verify and /v3.
 */
const PROVIDERS: Readonly<Record<ProviderName, Provider>> = {
  turnstile: {
    url: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    tells: ['hostname', 'action'],
  },
  hcaptcha: { url: 'https://api.hcaptcha.com/siteverify', tells: ['hostname'], takesSiteKey: true },
  recaptcha: {
    url: 'https://www.google.com/recaptcha/api/siteverify',
    tells: ['hostname', 'action', 'score'],
  },
}

type Solution = { readonly response: string; readonly address: string }

/** Milliseconds and bytes: a request waits for the answer, which is short. */
const LIMITS = { timeout: 5_000, maxBytes: 64 * 1_024 }

/** Whether the provider accepts the solution, for a page and an action that the settings allow. Throws 503 when it does not answer. */
export async function isAccepted(kernel: Kernel, name: ProviderName, solution: Solution): Promise<boolean> {
  const { captcha } = kernel.config.auth
  const provider = PROVIDERS[name]
  const verdict = await ask(kernel, provider, solution)
  if (verdict.success !== true) {
    expectOwnSecret(kernel, verdict)
    return false
  }
  return provider.tells.every((member) => ACCEPTS[member](captcha, verdict[member]))
}

type Verdict = Readonly<Record<string, unknown>>

const ACCEPTS: Readonly<Record<Provider['tells'][number], (captcha: Captcha, value: unknown) => boolean>> = {
  hostname: ({ allowed_hostnames: allowed }, hostname) =>
    allowed.length === 0 || (typeof hostname === 'string' && allowed.includes(hostname.toLowerCase())),
  action: ({ expected_action: expected }, action) => expected === undefined || action === expected,
  // Only version 3 of reCAPTCHA has scores.
  score: ({ min_score: lowest }, score) =>
    score === undefined || (typeof score === 'number' && score >= lowest),
}

async function ask(
  { config, outbound, log }: Kernel,
  { url, takesSiteKey = false }: Provider,
  { response, address }: Solution,
): Promise<Verdict> {
  const { secret = '', site_key, verify_url = url } = config.auth.captcha
  const form = new URLSearchParams({ secret, response, remoteip: address })
  if (takesSiteKey && site_key !== undefined) form.set('sitekey', site_key)
  try {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': 'gatehouse' }
    const answer = await outbound.send(verify_url, {
      method: 'POST',
      headers,
      body: form.toString(),
      ...LIMITS,
    })
    const verdict: unknown = answer.isWhole ? JSON.parse(answer.body.toString()) : undefined
    if (answer.status !== 200 || typeof verdict !== 'object' || verdict === null)
      throw new Error(`the captcha provider answered ${answer.status}, or no JSON object`)
    return verdict as Verdict // an object of JSON
  } catch (error) {
    log.warn({ event: 'captcha_check_failed', error }, 'the captcha provider gave no answer')
    throw fail('CAPTCHA_UNAVAILABLE')
  }
}

/** Nobody can solve a captcha whose secret is wrong. */
function expectOwnSecret({ log }: Kernel, { 'error-codes': codes }: Verdict): void {
  const ours = Array.isArray(codes) ? codes.filter((code) => /-secret$/.test(String(code))) : []
  if (ours.length === 0) return
  log.error({ event: 'captcha_misconfigured', codes: ours }, 'the provider refuses auth.captcha.secret')
  throw fail('CAPTCHA_UNAVAILABLE')
}
