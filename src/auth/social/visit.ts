import { listAccounts } from '#identity/accounts.ts'
import { act } from '#identity/act.ts'
import type { SessionProof } from '#identity/proof.ts'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { accountOf } from '../account/account.ts'
import { authUrl } from '../auth-url.ts'
import { bySession, type Caller } from '../door/access.ts'
import type { Admission, RenewedSession } from '../door/admit.ts'
import { expectShown } from '../door/demands.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { reauthenticateByProvider } from '../reauthenticate/reauthenticate.ts'
import { withQuery } from '../redirect.ts'
import { redeemCode } from './client/authorization.ts'
import type { ProviderClient } from './client/provider-client.ts'
import { enter } from './enter.ts'
import { type Identity, identityOfTokens, unknownAccount } from './identity.ts'
import { linkIdentity } from './link.ts'
import { asClaims, type Claims } from './providers/provider.ts'
import type { SocialProviders } from './social-providers.ts'
import {
  beginVisit,
  type NewState,
  type ProviderReturn,
  redeemState,
  type SessionTicket,
  type StateTicket,
  type Visit,
} from './state.ts'

type VisitRequest = Omit<Visit, 'scopes'> & { readonly scopes?: readonly string[] | undefined }

/** The URL at the provider where a sign-in begins. The scopes of the request replace the default ones. */
export function beginSocialSignIn(
  kernel: Kernel,
  client: ProviderClient,
  { scopes, ...asked }: VisitRequest,
  mark: string,
): Promise<string> {
  const visit = { ...asked, scopes: withRequired(client, scopes ?? defaultScopes(client)) }
  return beginVisit(kernel, client, visit, mark, (ticket) =>
    issueTicket(kernel, 'social-sign-in', { ...ticket, userId: null, sessionId: null, address: null }),
  )
}

/** The same for linking. The scopes of the request are added to the default ones, and the state ends with the caller's session. */
export function beginLink(
  kernel: Kernel,
  client: ProviderClient,
  { scopes = [], ...asked }: VisitRequest,
  { mark, caller }: { readonly mark: string; readonly caller: Caller },
): Promise<string> {
  const visit = { ...asked, scopes: withRequired(client, [...defaultScopes(client), ...scopes]) }
  return beginVisit(kernel, client, visit, mark, (ticket) =>
    act(kernel, bySession(caller), async (kernel, { user: { id: userId, email: address } }) => {
      await expectShown(kernel, caller.session, 'linkAccount')
      return issueTicket(kernel, 'social-link', { ...inSession(ticket, caller), userId, address })
    }),
  )
}

/** The same for showing an account that is linked already. */
export function beginReauthentication(
  kernel: Kernel,
  client: ProviderClient,
  asked: Omit<Visit, 'scopes'>,
  { mark, caller }: { readonly mark: string; readonly caller: Caller },
): Promise<string> {
  const visit = { ...asked, scopes: withRequired(client, defaultScopes(client)), isAgain: true }
  return beginVisit(kernel, client, visit, mark, (ticket) =>
    act(kernel, bySession(caller), async (kernel, { user: { id: userId, email: address } }) => {
      accountOf(await listAccounts(kernel.db, userId), { providerId: client.name })
      const of = { ...inSession(ticket, caller), userId, address }
      return issueTicket(kernel, 'social-reauthentication', of)
    }),
  )
}

const inSession = ({ payload, lifetime }: NewState, { session, token }: Caller) => ({
  lifetime,
  sessionId: session.id,
  payload: { ...payload, token: tokenHash(token).toString('base64url') },
})

const defaultScopes = ({ provider, settings }: ProviderClient): readonly string[] =>
  settings.scopes.length > 0 ? settings.scopes : provider.scopes

const withRequired = ({ provider }: ProviderClient, scopes: readonly string[]): readonly string[] => [
  ...new Set([...provider.required, ...scopes]),
]

/** A browser that returns from a provider. */
export type Return = ProviderReturn & {
  /** The session whose token the browser has sent; `none` if it sent a token of no session. */
  readonly session: Caller | 'none' | undefined
}

/** Where the browser goes, and the session that it gets if it was no linking. */
type Arrival = {
  readonly target: string
  readonly admission?: Admission | RenewedSession
  readonly isOfConsole?: boolean | undefined
}

/** Completes a sign-in, a linking or a reauthentication at the way back from the provider. Every expected failure is a redirect with `?error=`. */
export async function completeVisit(
  kernel: Kernel,
  providers: SocialProviders,
  returned: Return,
  context: SignInContext,
): Promise<Arrival> {
  let errorTarget = authUrl(kernel, '/error')
  try {
    const ticket = await redeemState(kernel, returned)
    errorTarget = ticket.payload.errorCallbackURL ?? errorTarget
    const client = providers.find(returned.provider)
    const isSignIn = ticket.purpose === 'social-sign-in'
    if (!isSignIn) expectSessionOf(ticket, returned)
    const identify = () => identityOfReturn(kernel, client, ticket, returned)
    const identity = await (isSignIn ? recordingRefusal(kernel, unknownAccount, identify) : identify())
    const { isOfConsole } = ticket.payload
    return { ...(await arrive(kernel, { provider: client.name, identity, ticket }, context)), isOfConsole }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { target: withQuery(errorTarget, { error: errorName(error) }) }
  }
}

/** A browser that has another session by now must not finish what this one has begun. */
function expectSessionOf({ sessionId, payload }: StateTicket, { session }: Return): void {
  // The cookie of the application is not about the console.
  if (session === undefined || payload.isOfConsole === true) return
  if (session === 'none' || session.session.id !== sessionId) throw fail('STATE_MISMATCH')
}

async function identityOfReturn(
  kernel: Kernel,
  client: ProviderClient,
  { payload: { scopes, since }, secrets }: Awaited<ReturnType<typeof redeemState>>,
  { answer }: ProviderReturn,
): Promise<Identity> {
  if (!answer.has('code') && !answer.has('error')) throw fail('NO_CODE')
  const tokens = { scopes, ...(await redeemCode(kernel, client, { ...secrets, answer })) }
  return identityOfTokens(kernel, client, {
    tokens,
    nonce: secrets.nonce,
    sent: sentWith(answer),
    since: since === undefined ? undefined : new Date(since),
  })
}

/** Apple sends the name with the first authorization only, as a form field and unsigned. */
function sentWith(answer: URLSearchParams): Claims | undefined {
  try {
    return asClaims(JSON.parse(answer.get('user') ?? ''))
  } catch {
    return undefined
  }
}

type VisitEnd = { readonly provider: string; readonly identity: Identity; readonly ticket: StateTicket }

async function arrive(
  kernel: Kernel,
  { provider, identity, ticket }: VisitEnd,
  context: SignInContext,
): Promise<Arrival> {
  const { callbackURL: target = '/', newUserCallbackURL = target, requestSignUp = false } = ticket.payload
  if (ticket.purpose === 'social-reauthentication') {
    const account = { providerId: provider, accountId: identity.accountId }
    return { target, admission: await reauthenticateByProvider(kernel, { ...proofOf(ticket), account }) }
  }
  const refuse = () => fail('STATE_MISMATCH')
  const outcome =
    ticket.purpose === 'social-link'
      ? await linkIdentity(kernel, { proof: proofOf(ticket), refuse, provider, identity })
      : undefined
  if (outcome === 'linked' || outcome === 'linked already') return { target }
  const entering = { provider, identity, requestSignUp }
  const { admission, isNewUser } = await enter(kernel, entering, { ...context, callbackURL: target })
  return { target: isNewUser || outcome === 'upgraded' ? newUserCallbackURL : target, admission }
}

/** The session, under the token that it had when the visit began. */
const proofOf = ({ userId, sessionId, payload }: SessionTicket): SessionProof => ({
  userId,
  session: { id: sessionId ?? '', tokenHash: Buffer.from(payload.token ?? '', 'base64url') },
})

/** The codes of redirects, as clients of better-auth know them. */
const ERROR_NAMES: Readonly<Record<string, string>> = {
  BANNED_USER: 'banned',
  SIGN_UP_DISABLED: 'signup_disabled',
}

function errorName({ code, details }: Failure): string {
  const reason = details?.error
  // Of the provider (RFC 6749, section 4.1.2.1).
  if (code === 'PROVIDER_REFUSED' && typeof reason === 'string' && /^[a-z_]{1,64}$/.test(reason))
    return reason
  return ERROR_NAMES[code] ?? code.toLowerCase()
}
