import type { Kernel } from '#kernel/kernel.ts'
import { type Caller, proofOf } from '../door/access.ts'
import type { Admission, RenewedSession } from '../door/admit.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { reauthenticateByProvider } from '../reauthenticate/reauthenticate.ts'
import { hasOwnNonce } from './client/id-token.ts'
import type { ProviderClient } from './client/provider-client.ts'
import { type Entrance, enter } from './enter.ts'
import { type Identity, identityOfIdToken, unknownAccount } from './identity.ts'
import { linkIdentity } from './link.ts'

type GivenIdToken = {
  readonly token: string
  readonly nonce?: string | undefined
  readonly accessToken?: string | undefined
  readonly refreshToken?: string | undefined
  /** Of the access token, as milliseconds or seconds since 1970. */
  readonly expiresAt?: number | undefined
}

type SignInAsked = {
  readonly idToken: GivenIdToken
  readonly requestSignUp: boolean
  /** An anonymous user, whose first way in the account becomes unless another user has it. */
  readonly upgrading: Caller | undefined
}

/** Signs in by an ID token that a native app, or a script of the provider on a page, has received. */
export async function signInWithIdToken(
  kernel: Kernel,
  client: ProviderClient,
  { idToken, requestSignUp, upgrading }: SignInAsked,
  context: SignInContext,
): Promise<Entrance> {
  const identity = await recordingRefusal(kernel, unknownAccount, () =>
    identityOfGiven(kernel, client, idToken),
  )
  const proven = { provider: client.name, identity }
  if (upgrading !== undefined) await linkIdentity(kernel, { ...inSession(upgrading), ...proven })
  return enter(kernel, { ...proven, requestSignUp }, context)
}

const inSession = (caller: Caller) => ({ proof: proofOf(caller), refuse: () => fail('UNAUTHORIZED') })

/** Links the account of such an ID token. The session that begins for an anonymous user, who is a known one then. */
export async function linkIdToken(
  kernel: Kernel,
  client: ProviderClient,
  { idToken, caller }: { readonly idToken: GivenIdToken; readonly caller: Caller },
  context: SignInContext,
): Promise<Admission | undefined> {
  const proven = { provider: client.name, identity: await identityOfGiven(kernel, client, idToken) }
  const outcome = await linkIdentity(kernel, { ...inSession(caller), ...proven })
  if (outcome === 'linked already') throw fail('SOCIAL_ACCOUNT_ALREADY_LINKED')
  if (outcome === 'of another user') throw fail('ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER')
  if (outcome === 'linked') return undefined
  return (await enter(kernel, { ...proven, requestSignUp: false }, context)).admission
}

/** Milliseconds that an ID token stands for a sign-in, as a session's own proof does (demands.ts). */
const SIGNED_IN_FOR = 600_000

/** Shows the account of such an ID token in the caller's session. */
export async function reauthenticateByIdToken(
  kernel: Kernel,
  client: ProviderClient,
  idToken: GivenIdToken,
  caller: Caller,
): Promise<RenewedSession> {
  const since = new Date(kernel.now().getTime() - SIGNED_IN_FOR)
  const { accountId } = await identityOfGiven(kernel, client, idToken, since)
  return reauthenticateByProvider(kernel, {
    ...proofOf(caller),
    account: { providerId: client.name, accountId },
  })
}

async function identityOfGiven(
  kernel: Kernel,
  client: ProviderClient,
  { token, nonce, accessToken, refreshToken, expiresAt }: GivenIdToken,
  since?: Date,
): Promise<Identity> {
  if (hasOwnNonce(kernel, token)) throw fail('INVALID_ID_TOKEN')
  const tokens = {
    idToken: token,
    ...(accessToken !== undefined && {
      accessToken,
      accessTokenExpiresAt: expiresAt === undefined ? null : instantOf(expiresAt),
    }),
    ...(refreshToken !== undefined && { refreshToken }),
  }
  return identityOfIdToken(kernel, client, { tokens, nonce, since })
}

/** Below 10^11, milliseconds would be a day before 1973. */
const instantOf = (given: number): Date => new Date(given < 1e11 ? given * 1_000 : given)
