import { act, Refusal } from '#identity/act.ts'
import {
  deletePasskey,
  insertPasskey,
  listPasskeys,
  type Passkey,
  updatePasskeyName,
} from '#identity/passkeys.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { updatePasskeyHad } from '#identity/standing.ts'
import { tell } from '#identity/tell.ts'
import { deleteTicketsFor } from '#identity/tickets.ts'
import { deleteTrustedDevices } from '#identity/trusted-devices.ts'
import type { User } from '#identity/users.ts'
import { isLastWayIn } from '#identity/ways-in.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID, uuidv7 } from '#kernel/random.ts'
import { expectOpenSignUp, upgrade } from '../anonymous/upgrade.ts'
import { bySession, type Caller } from '../door/access.ts'
import { type Admission, admit } from '../door/admit.ts'
import { expectShown, settlingOf } from '../door/demands.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { expectMayEnrol, lacksFactorOnceKnown } from '../two-factor/restricted.ts'
import { acceptableName } from '../user-fields.ts'
import { redeemRegistrationChallenge } from './challenges.ts'
import { relyingParty } from './relying-party.ts'
import type { AttestationResponse } from './schemas.ts'
import { type Attested, verifyAttestation } from './verification.ts'

/** Passkeys of one user. More would make the options too long for browsers. */
const MAX_PASSKEYS = 100

type Registration = {
  readonly response: AttestationResponse
  readonly challengeId: string
  readonly name?: string | undefined
  readonly revokeOtherSessions?: boolean | undefined
}

/** The session is that of an anonymous user, who is a known one now. */
type Registered = { readonly passkey: Passkey; readonly admission: Admission | undefined }

/** Adds the passkey that the caller's authenticator has made for the challenge. */
export async function registerPasskey(
  kernel: Kernel,
  caller: Caller,
  { response, challengeId, name: asked = '', revokeOtherSessions }: Registration,
  context: SignInContext,
): Promise<Registered> {
  const rp = relyingParty(kernel)
  const name = asked.trim() === '' ? null : acceptableName(asked)
  const { require_user_verification } = kernel.config.auth.passkey
  return changeFactors(kernel, caller, revokeOtherSessions, async (kernel, user) => {
    const isRestricted = await expectMayEnrol(kernel, user, caller)
    await expectShown(kernel, caller.session, 'addPasskey')
    const challenge = await redeemRegistrationChallenge(kernel, caller, user, challengeId)
    const requireUserVerification =
      require_user_verification || isRestricted || lacksFactorOnceKnown(kernel, user, caller)
    const attested = await verifyAttestation(response, { challenge, rp, requireUserVerification })
    if ('reason' in attested) throw refusalOf(attested.reason)
    const added = await addPasskey(kernel, user, {
      ...attested,
      name,
      rpId: rp.id,
      // The first way in of an anonymous user stays as that of a new user does, at the first proof of the address too.
      addedBy: user.isAnonymous ? user.id : caller.session.id,
      settlesAt: await settlingOf(kernel, caller.session),
    })
    await noticeTo(kernel, user, MAILS.passkeyAdded(user, name))
    // The first factor where one is required: a stranger may have signed in while there was none.
    if (isRestricted) await deleteUserSessions(kernel.db, user.id, caller.session.id)
    const admission = user.isAnonymous ? await upgradeByPasskey(kernel, user, added, context) : undefined
    return { passkey: added, admission }
  })
}

/** Gives the user a new session. A registration does not tell whether the authenticator has verified the user. */
async function upgradeByPasskey(
  kernel: Kernel,
  user: User,
  { id, createdAt: addedAt }: Passkey,
  context: SignInContext,
): Promise<Admission> {
  expectOpenSignUp(kernel, 'passkey')
  await upgrade(kernel, user, { by: 'passkey', method: 'passkey' })
  const shown = [{ way: 'unverified passkey', addedAt, settlesAt: null }] as const
  const refuse = () => new Error('the passkey was added in this transaction and is gone')
  return admit(kernel, { way: 'passkey', shown, proof: { userId: user.id, passkey: id }, refuse }, context)
}

/** The challenge is used up all the same. */
const refusalOf = (reason: string): Refusal =>
  new Refusal(fail('FAILED_TO_VERIFY_REGISTRATION'), async ({ log }) =>
    log.info({ event: 'passkey_registration_refused', reason }, 'passkey refused'),
  )

async function addPasskey(
  kernel: Kernel,
  user: User,
  attested: Attested & Pick<Passkey, 'name' | 'rpId' | 'settlesAt'> & { readonly addedBy: string },
): Promise<Passkey> {
  if ((await listPasskeys(kernel.db, user.id)).length >= MAX_PASSKEYS) throw fail('TOO_MANY_PASSKEYS')
  const createdAt = kernel.now()
  const id = uuidv7(createdAt, kernel.random)
  const added = await insertPasskey(kernel.db, { ...attested, id, userId: user.id, createdAt })
  if (added === undefined) throw refusalOf('The credential is registered already')
  await deleteTrustedDevices(kernel.db, user.id)
  await tell(kernel, 'passkey.added', { targetId: user.id, details: { passkeyId: id } })
  return added
}

export async function removePasskey(
  kernel: Kernel,
  caller: Caller,
  { id, revokeOtherSessions }: { readonly id: string; readonly revokeOtherSessions?: boolean | undefined },
): Promise<void> {
  if (!UUID.test(id)) throw fail('PASSKEY_NOT_FOUND')
  await changeFactors(kernel, caller, revokeOtherSessions, async (kernel, user) => {
    await expectShown(kernel, caller.session, 'removePasskey')
    const isLast = await isLastWayIn(kernel, user, id)
    if (!(await deletePasskey(kernel.db, { id, userId: user.id }))) throw fail('PASSKEY_NOT_FOUND')
    if (isLast) throw fail('FAILED_TO_UNLINK_LAST_ACCOUNT')
    await updatePasskeyHad(kernel.db, caller.session)
    // A sign-in with this passkey may wait for its second factor, and an approved device for a session that has shown it.
    await deleteTicketsFor(kernel.db, user.id, ['second-factor', 'device-session'])
    await deleteTrustedDevices(kernel.db, user.id)
    await tell(kernel, 'passkey.removed', { targetId: user.id, details: { passkeyId: id } })
    await noticeTo(kernel, user, MAILS.passkeyRemoved(user))
  })
}

export async function renamePasskey(
  kernel: Kernel,
  caller: Caller,
  { id, name: asked }: { readonly id: string; readonly name: string },
): Promise<Passkey> {
  const name = acceptableName(asked)
  if (!UUID.test(id)) throw fail('PASSKEY_NOT_FOUND')
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    const former = (await listPasskeys(kernel.db, user.id)).find((passkey) => passkey.id === id)
    if (former?.name === name) return former
    const passkey = await updatePasskeyName(kernel.db, { id, userId: user.id, name })
    if (passkey === undefined) throw fail('PASSKEY_NOT_FOUND')
    await tell(kernel, 'passkey.renamed', { targetId: user.id, details: { passkeyId: id } })
    return passkey
  })
}

/** Runs the change as `act` does, and ends the other sessions if the caller asks for that. */
async function changeFactors<T>(
  kernel: Kernel,
  caller: Caller,
  revokeOtherSessions: boolean | undefined,
  change: (kernel: Kernel, user: User) => Promise<T>,
): Promise<T> {
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    const result = await change(kernel, user)
    // The upgrade of an anonymous user has ended them all, and the one that it has begun stays.
    if (revokeOtherSessions === true && !user.isAnonymous)
      await deleteUserSessions(kernel.db, user.id, caller.session.id)
    return result
  })
}
