import { type Credential, findCredential, type PasswordOrigin, upsertPassword } from '#identity/accounts.ts'
import { act, actWithoutProof } from '#identity/act.ts'
import { deleteKnownDevices, type Source } from '#identity/known-devices.ts'
import { isByMailAlone } from '#identity/mailbox.ts'
import { attemptPassword, hashPassword, isCheckable } from '#identity/passwords.ts'
import { deleteFactor } from '#identity/second-factor.ts'
import { deleteUserSessions, getSession, updateSessionToken } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { deleteTrustedDevices } from '#identity/trusted-devices.ts'
import type { User } from '#identity/users.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { bySession, type Caller, expectAlive } from '../door/access.ts'
import { expectShown, recordShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { requestMail } from '../mailing/request.ts'
import { type EndedSessions, MAILS } from '../mailing/texts.ts'
import { expectMayEnrol } from '../two-factor/restricted.ts'
import { acceptablePassword } from './password-policy.ts'

type StoredPassword = {
  /** The hash. */
  readonly password: string
  readonly ended: EndedSessions
  /** Absent: it replaces one that was shown, and is as old as that. */
  readonly origin?: PasswordOrigin
}

/** Stores the new password, mails a notice of it, and ends every open link, trusted and known device and begun factor of the user. */
export async function storePassword(
  kernel: Kernel,
  user: User,
  { password, ended, origin }: StoredPassword,
): Promise<void> {
  const now = kernel.now()
  await upsertPassword(kernel.db, { id: uuidv7(now, kernel.random), userId: user.id, password, now, origin })
  await deleteTickets(kernel.db, user)
  await deleteTrustedDevices(kernel.db, user.id)
  await deleteKnownDevices(kernel, user.id)
  await deleteFactor(kernel.db, user.id, false)
  await noticeTo(kernel, user, MAILS.passwordChanged(user, ended))
}

type ChangePassword = {
  readonly newPassword: string
  readonly currentPassword: string
  readonly revokeOtherSessions?: boolean | undefined
}

/** With `revokeOtherSessions` every other session ends, and this one gets a new token, which is returned. */
export async function changePassword(
  kernel: Kernel,
  caller: Caller,
  asked: ChangePassword,
): Promise<string | undefined> {
  const accepted = await acceptablePassword(kernel, asked.newPassword)
  const verified = await checkPassword(kernel, caller, asked.currentPassword)
  const password = await hashPassword(kernel, accepted)
  const token = asked.revokeOtherSessions === true ? randomToken(kernel.random) : undefined
  await act(kernel, bySession(verified), async (kernel, { user }) => {
    await recordShown(kernel, caller.session, ['password'])
    await storePassword(kernel, user, { password, ended: token === undefined ? 'none' : 'others' })
    const ended = token === undefined ? 0 : await deleteUserSessions(kernel.db, user.id, caller.session.id)
    await tell(kernel, 'password.changed', { targetId: user.id, details: { sessionsEnded: ended } })
    if (token === undefined) return
    await updateSessionToken(kernel.db, caller.session.id, tokenHash(token), kernel.now())
  })
  return token
}

/**
 * The caller with the stored hash, after the password was right; throws otherwise. Acting on the result states the hash again. An ended
 * session learns nothing about the password: it is looked up before the check, and once more before a failure is answered.
 */
export async function checkPassword(
  kernel: Kernel,
  caller: Caller,
  password: string,
): Promise<Caller & { readonly password: string }> {
  const [found] = await Promise.all([findCredential(kernel.db, caller.user.id), expectAlive(kernel, caller)])
  if (found === undefined) throw fail('CREDENTIAL_ACCOUNT_NOT_FOUND')
  try {
    const { user, session } = caller
    const checking = { user, found, source: { sessionId: session.id } }
    return { ...caller, password: await usableHash(kernel, checking, password) }
  } catch (error) {
    await expectAlive(kernel, caller)
    throw error
  }
}

/** The stored hash, or the one that waits to be stored, for a user who may have no session, after the password was right; throws otherwise. */
export async function checkPasswordOf(
  kernel: Kernel,
  user: User,
  password: string,
  source: Source,
  waiting?: string,
): Promise<string> {
  const found =
    waiting === undefined
      ? await findCredential(kernel.db, user.id)
      : { password: waiting, mustChangePassword: false }
  return usableHash(kernel, { user, found, source }, password)
}

type PasswordAttempt = {
  readonly user: User
  readonly found: Credential | undefined
  readonly source: Source
}

/** A password that cannot be checked, or has to be changed first, proves nothing: a reset link is mailed. */
async function usableHash(
  kernel: Kernel,
  { user: { id: userId, email }, found, source }: PasswordAttempt,
  password: string,
): Promise<string> {
  const refused = async (mail: 'renew-password' | 'change-password') => {
    await requestMail(kernel, mail, { email, source })
    return fail('PASSWORD_CHANGE_REQUIRED')
  }
  const stored = found?.password
  if (stored !== undefined && !isCheckable(kernel.config, stored)) throw await refused('renew-password')
  const isRight = await attemptPassword(kernel, { account: email, stored, userId, source }, password)
  if (stored === undefined || !isRight) {
    await recordFailure(kernel, 'password.failed', { targetId: userId, reason: 'INVALID_PASSWORD' })
    throw fail('INVALID_PASSWORD')
  }
  if (found?.mustChangePassword === true) throw await refused('change-password')
  return stored
}

/** For an operator, without a proof. Ends every session and every link of the user. False when there is no such user. */
export async function setPasswordByOperator(
  kernel: Kernel,
  userId: string,
  newPassword: string,
): Promise<boolean> {
  const password = await hashPassword(kernel, await acceptablePassword(kernel, newPassword))
  const done = await actWithoutProof(kernel, userId, async (kernel, user) => {
    await assignPassword(kernel, user, password)
    return true
  })
  return done ?? false
}

/** For a user whose row is locked. Ends every session and every link of the user. */
export async function assignPassword(
  kernel: Kernel,
  user: User,
  password: string,
  origin: PasswordOrigin = 'other',
): Promise<void> {
  if (user.isAnonymous) throw fail('USER_IS_ANONYMOUS')
  await storePassword(kernel, user, { password, ended: 'all', origin })
  const ended = await deleteUserSessions(kernel.db, user.id)
  await tell(kernel, 'password.assigned', { targetId: user.id, details: { sessionsEnded: ended } })
}

/** Sets the first password of a user who signs in another way. */
export async function setPassword(kernel: Kernel, caller: Caller, newPassword: string): Promise<void> {
  const password = await hashPassword(kernel, await acceptablePassword(kernel, newPassword))
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    await expectMayEnrol(kernel, user, caller)
    await expectShown(kernel, caller.session, 'setPassword')
    if ((await findCredential(kernel.db, user.id)) !== undefined) throw fail('PASSWORD_ALREADY_SET')
    const origin = isByMailAlone((await getSession(kernel.db, caller.session.id)).shown) ? 'mail' : 'other'
    await storePassword(kernel, user, { password, ended: 'none', origin })
    await tell(kernel, 'password.set', { targetId: user.id })
  })
}
