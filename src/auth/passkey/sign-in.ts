import { advanceCounter, findPasskeyByCredential } from '#identity/passkeys.ts'
import type { ShownWay } from '#identity/shown.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Admission, admit } from '../door/admit.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { redeemSignInChallenge } from './challenges.ts'
import { relyingParty } from './relying-party.ts'
import type { AssertionResponse } from './schemas.ts'
import { verifyAssertion } from './verification.ts'

export type Assertion = { readonly response: AssertionResponse; readonly challengeId: string }

/** Signs in the user of the passkey that has signed the challenge. */
export async function signInWithPasskey(
  kernel: Kernel,
  assertion: Assertion,
  context: SignInContext,
): Promise<Admission> {
  const passkey = await verifyPasskey(kernel, assertion)
  const { id, userId } = passkey
  const way = passkey.way === 'passkey' ? 'verified passkey' : 'passkey'
  const refuse = () => fail('AUTHENTICATION_FAILED')
  return recordingRefusal(
    kernel,
    async () => userId,
    () => admit(kernel, { way, shown: [passkey], proof: { userId, passkey: id }, refuse }, context),
  )
}

type ShownPasskey = ShownWay & {
  readonly id: string
  readonly userId: string
  readonly way: 'passkey' | 'unverified passkey'
}

/** The passkey that has signed the challenge, which is used up. `owner`: only a passkey of this user. */
export async function verifyPasskey(
  kernel: Kernel,
  { response, challengeId }: Assertion,
  owner?: string,
): Promise<ShownPasskey> {
  const rp = relyingParty(kernel)
  const challenge = await redeemSignInChallenge(kernel, challengeId)
  const passkey = await findPasskeyByCredential(kernel.db, response.id)
  if (passkey === undefined || (owner !== undefined && passkey.userId !== owner))
    throw fail('UNKNOWN_PASSKEY')
  const { id, userId, createdAt: addedAt, settlesAt } = passkey
  const { require_user_verification: requireUserVerification } = kernel.config.auth.passkey
  const asserted = await verifyAssertion(response, passkey, { challenge, rp, requireUserVerification })
  if ('reason' in asserted) {
    kernel.log.info(
      { event: 'passkey_assertion_refused', credential: id, reason: asserted.reason },
      'passkey refused',
    )
    throw await refused(kernel, userId)
  }
  if (!(await advanceCounter(kernel.db, { id, rpId: rp.id, ...asserted }))) {
    kernel.log.warn(
      { event: 'passkey_counter_not_higher', credential: id, userId, counter: asserted.counter },
      'the counter of a passkey did not increase: the authenticator may have been copied',
    )
    throw await refused(kernel, userId)
  }
  return { id, userId, addedAt, settlesAt, way: asserted.userVerified ? 'passkey' : 'unverified passkey' }
}

/** The failure, which the audit trail shows. */
async function refused(kernel: Kernel, targetId: string): Promise<Error> {
  const failure = fail('AUTHENTICATION_FAILED')
  await recordFailure(kernel, 'sign_in.failed', { targetId, reason: failure.code })
  return failure
}
