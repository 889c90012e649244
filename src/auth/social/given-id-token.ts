import { findUser, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Caller, proofOf } from '../door/access.ts'
import type { RenewedSession } from '../door/admit.ts'
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

/** Signs in by an ID token that a native app, or a script of the provider on a page, has received. */
export async function signInWithIdToken(
  kernel: Kernel,
  client: ProviderClient,
  asked: { readonly idToken: GivenIdToken; readonly requestSignUp: boolean },
  context: SignInContext,
): Promise<Entrance> {
  const identity = await recordingRefusal(kernel, unknownAccount, () =>
    identityOfGiven(kernel, client, asked.idToken),
  )
  return enter(kernel, { provider: client.name, identity, requestSignUp: asked.requestSignUp }, context)
}

/** Links the account of such an ID token. */
export async function linkIdToken(
  kernel: Kernel,
  client: ProviderClient,
  idToken: GivenIdToken,
  caller: Caller,
): Promise<void> {
  const identity = await identityOfGiven(kernel, client, idToken)
  const refuse = () => fail('UNAUTHORIZED')
  const linked = await linkIdentity(kernel, {
    proof: proofOf(caller),
    refuse,
    provider: client.name,
    identity,
  })
  if (linked === 'linked already') throw fail('SOCIAL_ACCOUNT_ALREADY_LINKED')
  if (linked === 'of another user') throw fail('ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER')
}

/** The first way in of the anonymous user of the session. Undefined: the account is of another user. */
export async function upgradeWithIdToken(
  kernel: Kernel,
  client: ProviderClient,
  idToken: GivenIdToken,
  caller: Caller,
): Promise<User | undefined> {
  const identity = await identityOfGiven(kernel, client, idToken)
  const refuse = () => fail('UNAUTHORIZED')
  const linking = { proof: proofOf(caller), refuse, provider: client.name, identity }
  const outcome = await linkIdentity(kernel, linking)
  return outcome === 'of another user' ? undefined : findUser(kernel.db, 'id', caller.user.id)
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
