import type { Static } from 'typebox'
import type { Passkey } from '#identity/passkeys.ts'
import { isPlaceholder } from '#identity/placeholders.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { CHALLENGE_LIFETIME, type Challenge } from './challenges.ts'
import { type RelyingParty, userHandle } from './relying-party.ts'
import type { CreationOptions, RequestOptions } from './schemas.ts'
import { ALGORITHMS } from './verification.ts'

/** An account, and the passkeys that it has. */
type Account = { readonly user: User; readonly passkeys: readonly Passkey[] }

type PasskeyWish = {
  readonly authenticatorAttachment: string | undefined
  /** A role requires a second factor, which a passkey is with user verification only. */
  readonly mustVerify: boolean
}

/**
 * For `navigator.credentials.create()`. The passkey has to be discoverable, because sign-in names no credentials. No attestation is asked
 * for, because every model of authenticator is accepted.
 */
export const creationOptions = (
  kernel: Kernel,
  { id, name }: RelyingParty,
  { challenge, challengeId }: Challenge,
  account: Account,
  { authenticatorAttachment, mustVerify }: PasskeyWish,
): Static<typeof CreationOptions> => ({
  challenge,
  challengeId,
  rp: { id, name },
  user: entityOf(account.user),
  pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
  timeout: CHALLENGE_LIFETIME,
  excludeCredentials: account.passkeys.map(descriptorOf),
  authenticatorSelection: {
    ...(authenticatorAttachment !== undefined && { authenticatorAttachment }),
    residentKey: 'required',
    requireResidentKey: true,
    userVerification: mustVerify ? 'required' : verificationIn(kernel),
  },
  attestation: 'none',
  extensions: { credProps: true },
})

/** For `navigator.credentials.get()`. Only a session's own passkeys are named. */
export function requestOptions(
  kernel: Kernel,
  { id: rpId, name }: RelyingParty,
  { challenge, challengeId }: Challenge,
  account: Account | undefined,
): Static<typeof RequestOptions> {
  const userVerification = verificationIn(kernel)
  return {
    challenge,
    challengeId,
    rpId,
    rp: { id: rpId, name },
    timeout: CHALLENGE_LIFETIME,
    userVerification,
    authenticatorSelection: { userVerification },
    extensions: {},
    ...(account !== undefined && {
      user: entityOf(account.user),
      allowCredentials: account.passkeys.map(descriptorOf),
    }),
  }
}

/** Authenticators show it to the user, to whom a placeholder says nothing. */
const entityOf = ({ id, email, name }: User) => ({
  ...{ id: userHandle(id), displayName: name },
  name: isPlaceholder(email) ? name : email,
})

const verificationIn = ({ config }: Kernel) =>
  config.auth.passkey.require_user_verification ? 'required' : 'preferred'

const descriptorOf = ({ credentialID: id, transports }: Passkey) => ({
  id,
  type: 'public-key',
  ...(transports !== '' && { transports: transports.split(',') }),
})
