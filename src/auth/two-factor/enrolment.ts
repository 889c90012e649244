import { findPassword } from '#identity/accounts.ts'
import { act } from '#identity/act.ts'
import { deleteFactor } from '#identity/second-factor.ts'
import { deleteUserSessions, type Session, updateSessionToken } from '#identity/sessions.ts'
import { getStanding, updateFactorHad } from '#identity/standing.ts'
import { tell, untold } from '#identity/tell.ts'
import { deleteTicketsFor } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { deleteTrustedDevices } from '#identity/trusted-devices.ts'
import { type User, updateUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { type DemandingVerb, expectShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { type FactorChange, MAILS } from '../mailing/texts.ts'
import { checkPassword } from '../password/password.ts'
import { expectMailedCode } from './checks.ts'
import { codeHashes, newBackupCodes } from './codes.ts'
import type { SecondFactorMethod } from './pending.ts'
import { expectMayEnrol } from './restricted.ts'
import {
  type Factor,
  findBegunFactor,
  findFactor,
  insertFactor,
  replaceBackupCodes,
  updateFactorInForce,
} from './store.ts'
import { newTotpSecret, totpUri } from './totp.ts'

type Owner = { readonly password?: string | undefined }
/** Asked for with a change: every session of the user but the caller's ends. */
type RevokeOthers = { readonly revokeOtherSessions?: boolean | undefined }
type Enrolment = {
  readonly method: SecondFactorMethod
  readonly totpURI: string | null
  readonly backupCodes: string[]
}

/** Begins a new factor. The old one holds until the first right code of the new one. */
export async function enrol(
  kernel: Kernel,
  caller: Caller,
  {
    method,
    issuer,
    ...owner
  }: Owner & { readonly method: SecondFactorMethod; readonly issuer?: string | undefined },
): Promise<Enrolment> {
  const backupCodes = newBackupCodes(kernel.random)
  const secret = method === 'totp' ? newTotpSecret(kernel.random) : null
  await actAsOwner(kernel, caller, owner, async (kernel, user, expectProof) => {
    const isRequired = await expectMayEnrol(kernel, user, caller)
    const { id: userId } = user
    const hasOne = (await findFactor(kernel.db, userId, true)) !== undefined
    await expectProof(hasOne ? 'replaceFactor' : 'addFactor')
    if (method === 'otp')
      expectMailedCode({ method }, await getStanding(kernel.db, caller.session.id), { isRequired })
    const createdAt = kernel.now()
    const sealed = secret === null ? null : kernel.secrets.seal('two-factor-secret', secret, userId)
    const addedBy = caller.session.id
    const factor = {
      id: uuidv7(createdAt, kernel.random),
      userId,
      method,
      secret: sealed,
      addedBy,
      createdAt,
    }
    await deleteFactor(kernel.db, userId, false)
    await insertFactor(kernel.db, factor, hashesOf(kernel, userId, backupCodes))
    untold(kernel, 'a factor counts when it is confirmed')
  })
  return { method, backupCodes, totpURI: secret === null ? null : uriOf(kernel, caller.user, secret, issuer) }
}

/**
 * Puts the new factor in force in place of the old one, and gives the session a new token. A first one ends every other session: a
 * stranger may have signed in while there was none.
 */
export async function confirmFactor(
  kernel: Kernel,
  { session }: Caller,
  { id }: User,
  factor: Factor,
  { revokeOtherSessions = false }: RevokeOthers,
): Promise<{ readonly token: string; readonly user: User }> {
  const isFirst = !(await deleteFactor(kernel.db, id, true))
  await updateFactorInForce(kernel.db, factor.id)
  await updateFactorHad(kernel.db, session.id, factor.method)
  const user = await updateUser(kernel.db, id, { twoFactorEnabled: true }, kernel.now())
  if (user === undefined) throw new Error('the user was locked in this transaction and is gone')
  const token = randomToken(kernel.random)
  await updateSessionToken(kernel.db, session.id, tokenHash(token), kernel.now())
  await tell(kernel, 'second_factor.enabled', { targetId: id, details: { method: factor.method } })
  await endFormerTrust(kernel, user, {
    change: 'enabled',
    session,
    revokeOtherSessions: revokeOtherSessions || isFirst,
  })
  return { token, user }
}

/** Ends both the factor in force and one that was begun. */
export async function disable(
  kernel: Kernel,
  caller: Caller,
  { password, ...revoking }: Owner & RevokeOthers,
): Promise<void> {
  await actAsOwner(kernel, caller, { password }, async (kernel, user, expectProof) => {
    await expectProof('disableFactor')
    const wasBegun = await deleteFactor(kernel.db, user.id, false)
    const wasInForce = await removeFactorInForce(kernel, user)
    if (!wasInForce && !wasBegun) throw fail('TWO_FACTOR_NOT_ENABLED')
    if (!wasInForce) return untold(kernel, 'a factor counts when it is confirmed')
    await updateFactorHad(kernel.db, caller.session.id)
    await tell(kernel, 'second_factor.disabled', { targetId: user.id })
    await endFormerTrust(kernel, user, { change: 'disabled', session: caller.session, ...revoking })
  })
}

export async function removeFactorInForce(kernel: Kernel, { id }: User, exceptOf?: string): Promise<boolean> {
  const wasInForce = await deleteFactor(kernel.db, id, true, exceptOf)
  if (!wasInForce) return false
  await updateUser(kernel.db, id, { twoFactorEnabled: false }, kernel.now())
  // Sessions forget that they have shown it, and an approval has written it down.
  await deleteTicketsFor(kernel.db, id, ['device-session'])
  return true
}

/** Removes what another person may have added before the first proof of the address. `exceptOf`: the factors of this session stay. */
export async function removeSecondFactor(kernel: Kernel, user: User, exceptOf?: string): Promise<void> {
  await deleteFactor(kernel.db, user.id, false, exceptOf)
  if (!user.keepsFactor) await removeFactorInForce(kernel, user, exceptOf)
  await deleteTrustedDevices(kernel.db, user.id)
}

/** The URI of the factor that waits for its first code, or of the one in force. */
export async function totpUriOf(kernel: Kernel, caller: Caller, owner: Owner): Promise<string> {
  return actAsOwner(kernel, caller, owner, async (kernel, user, expectProof) => {
    const begun = await findBegunFactor(kernel, user.id, caller.session)
    const factor = begun?.method === 'totp' ? begun : await findFactor(kernel.db, user.id, true)
    await expectProof(factor?.inForce === false ? 'readBegunSecret' : 'readSecret')
    const sealed = factor?.secret ?? undefined
    const secret =
      sealed === undefined ? undefined : kernel.secrets.open('two-factor-secret', sealed, user.id)
    if (secret === undefined) throw fail('TOTP_NOT_ENABLED')
    return uriOf(kernel, user, secret)
  })
}

/** Replaces the backup codes of the factor in force. */
export async function renewBackupCodes(
  kernel: Kernel,
  caller: Caller,
  { password, ...revoking }: Owner & RevokeOthers,
): Promise<string[]> {
  const codes = newBackupCodes(kernel.random)
  await actAsOwner(kernel, caller, { password }, async (kernel, user, expectProof) => {
    await expectProof('replaceBackupCodes')
    const factor = await findFactor(kernel.db, user.id, true)
    if (factor === undefined) throw fail('TWO_FACTOR_NOT_ENABLED')
    await replaceBackupCodes(kernel.db, factor.id, hashesOf(kernel, user.id, codes))
    await tell(kernel, 'backup_codes.replaced', { targetId: user.id })
    await endFormerTrust(kernel, user, { change: 'codes', session: caller.session, ...revoking })
  })
  return codes
}

type TrustChange = RevokeOthers & { readonly change: FactorChange; readonly session?: Pick<Session, 'id'> }

/**
 * Follows every change of a factor: the user gets a notice, trusted devices and sign-ins that wait for the second factor end, and with
 * `revokeOtherSessions` every session but the caller's.
 */
async function endFormerTrust(
  kernel: Kernel,
  user: User,
  { change, session, revokeOtherSessions = false }: TrustChange,
): Promise<void> {
  await deleteTrustedDevices(kernel.db, user.id)
  await deleteTicketsFor(kernel.db, user.id, ['second-factor', 'second-factor-code'])
  if (revokeOtherSessions) await deleteUserSessions(kernel.db, user.id, session?.id)
  await noticeTo(kernel, user, MAILS.factorChanged(user, change))
}

/**
 * Runs the work as `act` does, after a password in the body was right. `expectProof` throws unless the session has shown what the
 * verb demands, by this request or before. A password that the account does not have is not looked at.
 */
async function actAsOwner<T>(
  kernel: Kernel,
  caller: Caller,
  { password }: Owner,
  work: (kernel: Kernel, user: User, expectProof: (verb: DemandingVerb) => Promise<void>) => Promise<T>,
): Promise<T> {
  const isAsked = password !== undefined && (await findPassword(kernel.db, caller.user.id)) !== undefined
  const proven = isAsked ? await checkPassword(kernel, caller, password) : caller
  return act(kernel, bySession(proven), (kernel, { user }) =>
    work(kernel, user, (verb) =>
      expectShown(kernel, caller.session, verb, proven.password === undefined ? [] : ['password']),
    ),
  )
}

const hashesOf = (kernel: Kernel, owner: string, codes: readonly string[]): Buffer[] =>
  codes.map((code) => codeHashes(kernel, 'backup', { owner, code })[0])

function uriOf({ config, publicUrl }: Kernel, { email }: User, secret: string, issuer?: string): string {
  const service = config.auth.pages.name ?? new URL(publicUrl()).hostname
  return totpUri(secret, { issuer: issuer ?? service, label: email })
}
