import { actOnTicket } from '#identity/act.ts'
import type { SocialState } from '#identity/ticket-purposes.ts'
import { type NewTicket, redeemAnonymousTicket, type Ticket } from '#identity/tickets.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { browserMark } from '../door/cookies.ts'
import { fail } from '../errors.ts'
import { authorizationUrl, newSecrets, type Secrets } from './client/authorization.ts'
import type { ProviderClient } from './client/provider-client.ts'

/** Milliseconds that a visit to a provider may take. */
export const STATE_LIFETIME = 600_000

export type Visit = {
  readonly scopes: readonly string[]
  readonly loginHint?: string | undefined
  readonly callbackURL?: string | undefined
  readonly errorCallbackURL?: string | undefined
  readonly newUserCallbackURL?: string | undefined
  readonly requestSignUp?: boolean | undefined
  readonly isOfConsole?: boolean
  /** The person has to sign in at the provider, also if the provider still knows the browser. */
  readonly isAgain?: boolean
}

/**
 * Begins a visit to a provider and returns the URL that the browser is to open. `mark` is the value of a cookie of this browser
 * (cookies.ts), and `issue` stores the state.
 */
export async function beginVisit(
  kernel: Kernel,
  client: ProviderClient,
  { loginHint, isAgain = false, ...visit }: Visit,
  mark: string,
  issue: (ticket: NewState) => Promise<string>,
): Promise<string> {
  // Before anything is stored.
  await client.connect()
  const { codeVerifier, ...nonce } = newSecrets(kernel, client)
  const place = { provider: client.name, browser: browserMark(mark) }
  const sealed = kernel.secrets.seal('social-state', codeVerifier, ownerOf(place))
  const state = await issue({
    lifetime: STATE_LIFETIME,
    payload: {
      ...visit,
      ...nonce,
      ...place,
      codeVerifier: sealed,
      ...(isAgain && { since: kernel.now().toISOString() }),
    },
  })
  const asked = { ...nonce, codeVerifier, state, scopes: visit.scopes, loginHint, isAgain }
  return authorizationUrl(kernel, client, asked)
}

/** A verifier is good for this provider in this browser only. */
const ownerOf = ({ provider, browser }: Pick<SocialState, 'provider' | 'browser'>): string =>
  `${provider} ${browser}`

export type NewState = Pick<NewTicket<'social-sign-in'>, 'lifetime' | 'payload'>

/** A request to the callback. */
export type ProviderReturn = {
  readonly provider: string
  /** The query of the authorization response. */
  readonly answer: URLSearchParams
  /** The value of the browser's cookie. */
  readonly mark: string | undefined
}

/** Purposes of states that belong to a session. */
const OF_SESSION = ['social-link', 'social-reauthentication'] as const

export type SessionTicket = Ticket<(typeof OF_SESSION)[number]>
export type StateTicket = Ticket<'social-sign-in'> | SessionTicket

/**
 * Redeems the state of an authorization response. It is valid once, for ten minutes, for the provider that it was sent to and in the
 * browser in which the visit began. Any other use is STATE_MISMATCH and consumes it, except from a browser without that cookie.
 */
export async function redeemState(
  kernel: Kernel,
  { provider, answer, mark }: ProviderReturn,
): Promise<StateTicket & { readonly secrets: Secrets }> {
  const mismatch = () => fail('STATE_MISMATCH')
  if (mark === undefined) throw mismatch()
  const ticket = await redeemTicketOf(kernel, answer.get('state') ?? '')
  if (ticket === undefined || ticket.expired) throw mismatch()
  const { payload } = ticket
  if (payload.provider !== provider || payload.browser !== browserMark(mark)) throw mismatch()
  const codeVerifier = kernel.secrets.open('social-state', payload.codeVerifier, ownerOf(payload))
  // The secret was replaced in the meantime.
  if (codeVerifier === undefined) throw mismatch()
  return {
    ...ticket,
    secrets: { codeVerifier, ...(payload.nonce !== undefined && { nonce: payload.nonce }) },
  }
}

async function redeemTicketOf(kernel: Kernel, state: string): Promise<StateTicket | undefined> {
  const anonymous = await redeemAnonymousTicket(kernel, ['social-sign-in'], state)
  if (anonymous !== undefined) return anonymous
  const link = { purposes: OF_SESSION, token: state }
  const refusal = fail('STATE_MISMATCH')
  return actOnTicket(
    kernel,
    link,
    () => refusal,
    async (_kernel, _user, ticket) => ticket,
  )
}
