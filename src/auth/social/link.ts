import { act } from '#identity/act.ts'
import { findLinkedAccount, insertLinkedAccount } from '#identity/linked-accounts.ts'
import { ANONYMOUS } from '#identity/placeholders.ts'
import type { SessionProof } from '#identity/proof.ts'
import { updateProviderTokens } from '#identity/provider-tokens.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { getSession, type Session } from '#identity/sessions.ts'
import { tell, untold } from '#identity/tell.ts'
import { findUser, type User, type UserChange } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { upgrade } from '../anonymous/upgrade.ts'
import { expectShown, settlingOf } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { maySignUp } from './enter.ts'
import { hasProvenAddress, type Identity, type ProvenIdentity } from './identity.ts'

type LinkRequest = {
  /** Names the session that links, which has to be alive still. */
  readonly proof: SessionProof
  readonly refuse: () => Error
  readonly provider: string
  readonly identity: Identity
}

/**
 * Links an account of a provider to the user of a session. `linked already`: it was linked to this user before, and has the new tokens
 * now, perhaps with more scopes. `upgraded`: it is the first way in of an anonymous user, whose sessions have ended. `of another user`: an
 * anonymous user asks, who stays as they are. In both cases whoever has shown the account may sign in with it (`enter`).
 */
export async function linkIdentity(kernel: Kernel, asked: LinkRequest): Promise<Outcome> {
  try {
    return await linkOnce(kernel, asked)
  } catch (error) {
    // Another user has taken the address meanwhile.
    if (!isConflict(error, 'user_email_key')) throw error
    return linkOnce(kernel, asked)
  }
}

type Outcome = 'linked' | 'linked already' | 'upgraded' | 'of another user'

const linkOnce = (
  kernel: Kernel,
  { proof, refuse, provider: providerId, identity }: LinkRequest,
): Promise<Outcome> =>
  act(kernel, { ...proof, refuse }, async (kernel, { user }) => {
    await expectMayLink(kernel, await getSession(kernel.db, proof.session.id), user)
    const account = { providerId, accountId: identity.accountId }
    const found = await findLinkedAccount(kernel, account)
    if (found === undefined) {
      if (!user.isAnonymous) expectSameEmail(kernel, user, { provider: providerId, identity })
      else if (!maySignUp(kernel, true)) throw fail('SIGN_UP_DISABLED')
      // The first way in of an anonymous user stays as that of a new user does, at the first proof of the address too.
      const adding = user.isAnonymous
        ? undefined
        : { addedBy: proof.session.id, settlesAt: await settlingOf(kernel, proof.session) }
      const linked = await insertLinkedAccount(kernel, user.id, account, identity.tokens, adding)
      if (linked === undefined) throw fail('UNABLE_TO_LINK_ACCOUNT')
      await tell(kernel, 'account.linked', { targetId: user.id, details: { provider: providerId } })
      if (user.isAnonymous) {
        const change = await profileOf(kernel, user, { provider: providerId, identity })
        await upgrade(kernel, user, { by: 'provider', method: `social:${providerId}`, change })
        return 'upgraded'
      }
      await noticeTo(kernel, user, MAILS.accountLinked(user, providerId))
      return 'linked'
    }
    if (found.userId !== user.id && user.isAnonymous) {
      untold(kernel, 'the account is of another user')
      return 'of another user'
    }
    if (found.userId !== user.id) throw fail('ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER')
    await updateProviderTokens(kernel, found.id, identity.tokens)
    untold(kernel, 'the account has new tokens')
    return 'linked already'
  })

/** As `link-social` asks it, again: the visit to the provider takes up to ten minutes. Impersonated sessions begin none. */
async function expectMayLink(kernel: Kernel, session: Session, user: User): Promise<void> {
  await expectShown(kernel, session, 'linkAccount')
  if (lacksSecondFactor(kernel.config, { user, session, impersonator: undefined }))
    throw fail('TWO_FACTOR_REQUIRED')
}

/** The account's address for an anonymous user, if the provider has proven it and no user has it; name and picture if there are none. */
async function profileOf(kernel: Kernel, { name, image }: User, proven: ProvenIdentity): Promise<UserChange> {
  const { identity } = proven
  const isFree =
    identity.email !== undefined &&
    hasProvenAddress(kernel, proven) &&
    (await findUser(kernel.db, 'email', identity.email)) === undefined
  return {
    ...(isFree && { email: identity.email, emailVerified: true }),
    ...(name === ANONYMOUS && identity.name !== '' && { name: identity.name }),
    ...(image === null && { image: identity.image }),
  }
}

/** An address that is only claimed says nothing about whose the account is, so it counts as another one. */
function expectSameEmail(kernel: Kernel, user: User, proven: ProvenIdentity): void {
  const isSame = proven.identity.email === user.email && hasProvenAddress(kernel, proven)
  if (!isSame && !kernel.config.auth.social.linking.allow_different_emails)
    throw fail('UNABLE_TO_LINK_ACCOUNT')
}
