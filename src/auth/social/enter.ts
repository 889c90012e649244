import { act } from '#identity/act.ts'
import { findLinkedAccount, insertLinkedAccount } from '#identity/linked-accounts.ts'
import { updateProviderTokens } from '#identity/provider-tokens.ts'
import { tell } from '#identity/tell.ts'
import { findUser, hasProvenEmail, isBanned, type NewUser, type User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { fieldsOfNew } from '../custom-fields/acceptable.ts'
import { addUser, newIdentity } from '../door/add-user.ts'
import { type Admission, admit, requestFirstLink } from '../door/admit.ts'
import { refuseHidden } from '../door/hidden-sign-ups.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { beforeSignUp, type SignUpMethod } from '../hooks/sign-up.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { hasProvenAddress, type ProvenIdentity } from './identity.ts'

/** An account that a provider has just proven, and what the request allows. */
type Entrant = ProvenIdentity & {
  readonly requestSignUp: boolean
}

export type Entrance = { readonly admission: Admission; readonly isNewUser: boolean }

/** Signs in the user to whom the account is linked, after linking it or adding the user if that is allowed. */
export const enter = (kernel: Kernel, entering: Entrant, context: SignInContext): Promise<Entrance> =>
  recordingRefusal(
    kernel,
    () => findOwner(kernel, entering),
    () => enterOnce(kernel, entering, context),
  )

/** The user of the account, else of its address. */
async function findOwner(kernel: Kernel, { provider, identity }: Entrant): Promise<string | undefined> {
  const { accountId, email } = identity
  const linked = await findLinkedAccount(kernel, { providerId: provider, accountId })
  if (linked !== undefined || email === undefined) return linked?.userId
  return (await findUser(kernel.db, 'email', email))?.id
}

async function enterOnce(kernel: Kernel, entering: Entrant, context: SignInContext): Promise<Entrance> {
  const { provider: providerId, identity } = entering
  const account = { providerId, accountId: identity.accountId }
  const found = await findOrLink(kernel, entering, context)
  // The account may be unlinked in the meantime.
  const entrance = {
    ...({
      way: 'social',
      shown: [{ way: `provider:${providerId}`, addedAt: found.addedAt, settlesAt: found.settlesAt }],
      proof: { userId: found.userId, account },
    } as const),
    address: hasProvenAddress(kernel, entering) ? identity.email : undefined,
    refuse: () => fail('ACCOUNT_NOT_LINKED'),
  }
  const admission = await admit(kernel, entrance, context)
  if (found.isOld) await updateProviderTokens(kernel, found.id, identity.tokens)
  return { admission, isNewUser: found.isNewUser }
}

type Found = {
  readonly userId: string
  readonly id: string
  readonly addedAt: Date
  readonly settlesAt: Date | null
  readonly isOld: boolean
  readonly isNewUser: boolean
}

/** Looks again when a concurrent request has taken the address, and then when another one has linked the account. */
async function findOrLink(kernel: Kernel, entering: Entrant, context: SignInContext): Promise<Found> {
  for (let look = 1; look <= 3; look++) {
    try {
      return await findOrAdd(kernel, entering, context)
    } catch (error) {
      if (!(error instanceof Overtaken) && !isConflict(error, 'user_email_key')) throw error
    }
  }
  throw fail('ACCOUNT_NOT_LINKED')
}

/** A concurrent request has linked the account. */
class Overtaken extends Error {}

async function findOrAdd(kernel: Kernel, entering: Entrant, context: SignInContext): Promise<Found> {
  const { provider: providerId, identity } = entering
  const { email } = identity
  // An address that is only claimed must not show whether it has an account (decision 25).
  const hides = kernel.config.auth.hide_registered_emails && !hasProvenAddress(kernel, entering)
  const linked = await findLinkedAccount(kernel, { providerId, accountId: identity.accountId })
  if (linked !== undefined) {
    const { id, userId, createdAt: addedAt, settlesAt } = linked
    if (hides && email !== undefined && (await isUnverified(kernel, userId)))
      await expectLikeSignUp(kernel, entering, email)
    return { id, userId, addedAt, settlesAt, isOld: true, isNewUser: false }
  }
  if (email === undefined) throw fail('EMAIL_NOT_FOUND')
  const user = await findUser(kernel.db, 'email', email)
  if (user === undefined) {
    expectSignUp(kernel, entering)
    return addUserOf(kernel, entering, email, context)
  }
  if (!hides) return linkByEmail(kernel, entering, user)
  await expectLikeSignUp(kernel, entering, email)
  return refuseHidden(kernel, user.id, context)
}

const isUnverified = async ({ db }: Kernel, userId: string): Promise<boolean> =>
  (await findUser(db, 'id', userId))?.emailVerified === false

/** Does a sign-in with an account that nobody has linked add a user? */
export function maySignUp({ config }: Kernel, isRequested: boolean): boolean {
  const { sign_up } = config.auth.social
  return sign_up === 'always' || (sign_up === 'requested' && isRequested)
}

function expectSignUp(kernel: Kernel, { requestSignUp }: Entrant): void {
  if (!maySignUp(kernel, requestSignUp)) throw fail('SIGN_UP_DISABLED')
  // Here too, so that this refusal does not tell an address without an account.
  fieldsOfNew(kernel, {})
}

/**
 * Refuses as a sign-up with the address would, hooks included, although no user is added: the address has an account, or is that of a user
 * whom an earlier visit has added, and who has not proven it. All of these visits are answered alike.
 */
async function expectLikeSignUp(kernel: Kernel, entering: Entrant, email: string): Promise<void> {
  expectSignUp(kernel, entering)
  await atomically(kernel, async (kernel) => {
    const user = newUserOf(kernel, entering, email)
    beforeSignUp(kernel, user, { method: methodOf(entering) }).expectConsent()
  })
}

const methodOf = ({ provider }: Entrant): SignUpMethod => `social:${provider}`

/** Links the account to the user who has its address, if both sides have proven the address (auth.md 6). */
function linkByEmail(kernel: Kernel, entering: Entrant, { id: userId, email }: User): Promise<Found> {
  const refusal = () => fail('ACCOUNT_NOT_LINKED')
  const mayLink = kernel.config.auth.social.linking.enabled && hasProvenAddress(kernel, entering)
  return act(kernel, { userId, refuse: refusal }, async (kernel, { user }) => {
    // A stranger who only claims the address does not learn of a ban.
    if (!mayLink) throw refusal()
    if (isBanned(user, kernel.now())) throw fail('BANNED_USER')
    // Before the address is proven, another person may have opened the account with it.
    if (!isVerified(user) || user.email !== email) throw refusal()
    const linked = await link(kernel, userId, entering)
    await noticeTo(kernel, user, MAILS.accountLinked(user, entering.provider))
    return { ...linked, isNewUser: false }
  })
}

/** An admin who calls the address verified does not know who has opened the account. */
const isVerified = (user: User): boolean =>
  hasProvenEmail(user) || (user.emailVerified && !user.verifiedByAdmin)

const addUserOf = (
  kernel: Kernel,
  entering: Entrant,
  email: string,
  context: SignInContext,
): Promise<Found> =>
  atomically(kernel, async (kernel) => {
    const user = await addUser(kernel, newUserOf(kernel, entering, email), methodOf(entering))
    const { email_password, email: mails } = kernel.config.auth
    // `admit` mails the link if the address has to be verified first.
    if (!user.emailVerified && mails.send_on_sign_up && !email_password.require_email_verification)
      await requestFirstLink(kernel, user, context, { isSignUp: true })
    return { ...(await link(kernel, user.id, entering)), isNewUser: true }
  })

function newUserOf(kernel: Kernel, { identity }: Entrant, email: string): NewUser {
  const { name, image, emailVerified } = identity
  const added = { name, email, emailVerified, image, username: null, displayUsername: null }
  return { ...newIdentity(kernel), ...added, fields: fieldsOfNew(kernel, {}) }
}

async function link(
  kernel: Kernel,
  userId: string,
  { provider: providerId, identity: { accountId, tokens } }: Entrant,
): Promise<Omit<Found, 'isNewUser'>> {
  const account = await insertLinkedAccount(kernel, userId, { providerId, accountId }, tokens)
  if (account === undefined) throw new Overtaken()
  await tell(kernel, 'account.linked', { targetId: userId, details: { provider: providerId } })
  return { userId, id: account.id, addedAt: account.createdAt, settlesAt: null, isOld: false }
}
