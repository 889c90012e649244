import assert from 'node:assert/strict'
import type { TestService } from '#test/harness.ts'
import { type Browser, createBrowser } from './browser.ts'
import type { OpenidProvider, Person } from './openid-provider.ts'

export const CLIENT = { id: 'gatehouse', secret: 'a secret of the client' }
/** The test's provider is on loopback, which the operator has to allow. */
export const TO_LOOPBACK = { allow_http: true, allow_networks: ['127.0.0.1'] }

/** Settings of the provider. */
export const oidcSettings = ({ issuer }: OpenidProvider, more: object = {}) =>
  ({ type: 'oidc', issuer, client_id: CLIENT.id, client_secret: CLIENT.secret, ...more }) as const

/** Registers the callbacks of these provider names. */
export function register(t: TestService, idp: OpenidProvider, names: readonly string[]): void {
  const redirectUris = names.map((name) => `${authUrlOf(t)}/callback/${name}`)
  idp.serve([{ ...CLIENT, redirectUris }])
}

export const authUrlOf = (t: TestService): string => `${t.service.kernel.publicUrl()}/api/auth`

export type Begin = { readonly provider?: string; readonly [field: string]: unknown }

/** A browser with its visits to the service and to the provider. */
export type Visitor = Browser & {
  /** Begins a sign-in; the URL at the provider. */
  begin(asked?: Begin, path?: string): Promise<string>
  /** The person signs in at the provider. Returns the URL of the callback, which is not opened. */
  visit(url: string): Promise<string>
  /** Opens the callback; where the browser is sent then. */
  arrive(url: string): Promise<string>
  /** All of it. */
  signIn(asked?: Begin): Promise<string>
  /** The user of the session cookie. */
  whoAmI(): Promise<string | undefined>
}

export function createVisitor(t: TestService): Visitor {
  const browser = createBrowser()
  const auth = authUrlOf(t)
  const begin: Visitor['begin'] = async (asked = {}, path = '/sign-in/social') => {
    const answer = await browser.send(`${auth}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: new URL(auth).origin },
      body: JSON.stringify({ provider: 'acme', callbackURL: '/app', errorCallbackURL: '/failed', ...asked }),
    })
    const body = (await answer.json()) as { readonly url: string } // checked by the status
    assert.equal(answer.status, 200, JSON.stringify(body))
    return body.url
  }
  const visit = (url: string) => {
    // Else the provider remembers the person of the last visit.
    for (const name of ['_session', '_session.sig']) browser.setCookie(name, undefined)
    return browser.followTo(url, `${auth}/callback`)
  }
  const arrive = async (url: string) => {
    const answer = await browser.send(url)
    return answer.headers.get('location') ?? `status ${answer.status}: ${await answer.text()}`
  }
  return {
    ...browser,
    begin,
    visit,
    arrive,
    signIn: async (asked) => arrive(await visit(await begin(asked))),
    async whoAmI() {
      const answer = await browser.send(`${auth}/get-session`)
      const body = (await answer.json()) as { readonly user?: { readonly email: string } }
      return body.user?.email
    },
  }
}

let count = 0

/** A person whom neither the provider nor the service knows. */
export function person(name: string, more: Partial<Person> = {}): Person {
  const id = `${name.toLowerCase()}-${++count}`
  return { sub: id, email: `${id}@example.com`, email_verified: true, name, ...more }
}
