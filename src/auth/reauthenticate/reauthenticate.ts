import { act } from '#identity/act.ts'
import { findLinkedAccount, type ProviderAccount } from '#identity/linked-accounts.ts'
import type { Proof } from '#identity/proof.ts'
import { getSession, updateSessionToken } from '#identity/sessions.ts'
import type { Shown, ShownWay } from '#identity/shown.ts'
import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { type Caller, proofOf } from '../door/access.ts'
import type { RenewedSession } from '../door/admit.ts'
import { recordShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { type Assertion, verifyPasskey } from '../passkey/sign-in.ts'
import { checkPassword } from '../password/password.ts'
import { showCode } from '../two-factor/verification.ts'

type Reauthentication = {
  readonly password?: string | undefined
  /** Of the second factor. */
  readonly code?: string | undefined
  readonly assertion?: Assertion | undefined
}

/** Shows in a session, which gets a new token, that its user is still there. Every process refuses the old token when this resolves. */
export async function reauthenticate(
  kernel: Kernel,
  caller: Caller,
  { password, code, assertion }: Reauthentication,
): Promise<RenewedSession> {
  const proven = password === undefined ? caller : await checkPassword(kernel, caller, password)
  const passkey = assertion && (await verifyPasskey(kernel, assertion, caller.user.id))
  const proof = { ...proofOf(proven), ...(passkey && { passkey: passkey.id }) }
  const shown: readonly (Shown | ShownWay)[] = [
    ...(password === undefined ? [] : ['password' as const]),
    ...(passkey === undefined ? [] : [passkey]),
  ]
  return act(kernel, { ...proof, refuse: unauthorized }, async (kernel, { user }) => {
    const ofFactor = code === undefined ? [] : [await showCode(kernel, user, caller.session, code)]
    return renew(kernel, user, caller.session.id, [...shown, ...ofFactor])
  })
}

const unauthorized = () => fail('UNAUTHORIZED')

/** The same by an account that a provider has just proven, and that was linked to the user before. */
export async function reauthenticateByProvider(
  kernel: Kernel,
  proof: Proof & { readonly session: { readonly id: string }; readonly account: ProviderAccount },
): Promise<RenewedSession> {
  const refuse = () => fail('ACCOUNT_NOT_LINKED', { message: 'The account is not linked to this user' })
  return act(kernel, { ...proof, refuse }, async (kernel, { user }) => {
    const found = await findLinkedAccount(kernel, proof.account)
    if (found === undefined) throw refuse()
    const way = `provider:${proof.account.providerId}` as const
    const { createdAt: addedAt, settlesAt } = found
    return renew(kernel, user, proof.session.id, [{ way, addedAt, settlesAt }])
  })
}

/** For a session that a proof has locked. */
async function renew(
  kernel: Kernel,
  user: User,
  id: string,
  given: readonly (Shown | ShownWay)[],
): Promise<RenewedSession> {
  const now = kernel.now()
  const token = randomToken(kernel.random)
  await recordShown(kernel, { id }, given)
  await updateSessionToken(kernel.db, id, tokenHash(token), now)
  const shown = given.map((each) => (typeof each === 'string' ? each : each.way))
  await tell(kernel, 'user.reauthenticated', { targetId: user.id, details: { sessionId: id, shown } })
  const session = await getSession(kernel.db, id)
  const maxAge = session.remembered ? session.expiresAt.getTime() - now.getTime() : undefined
  return { token, session, user, maxAge, trustedDevice: undefined }
}
