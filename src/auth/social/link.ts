import { act } from '#identity/act.ts'
import { findLinkedAccount, insertLinkedAccount } from '#identity/linked-accounts.ts'
import type { SessionProof } from '#identity/proof.ts'
import { updateProviderTokens } from '#identity/provider-tokens.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { getSession, type Session } from '#identity/sessions.ts'
import { tell, untold } from '#identity/tell.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectShown, settlingOf } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
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
 * now, perhaps with more scopes.
 */
export const linkIdentity = (
  kernel: Kernel,
  { proof, refuse, provider: providerId, identity }: LinkRequest,
): Promise<'linked' | 'linked already'> =>
  act(kernel, { ...proof, refuse }, async (kernel, { user }) => {
    await expectMayLink(kernel, await getSession(kernel.db, proof.session.id), user)
    const account = { providerId, accountId: identity.accountId }
    const found = await findLinkedAccount(kernel, account)
    if (found === undefined) {
      expectSameEmail(kernel, user, { provider: providerId, identity })
      const adding = { addedBy: proof.session.id, settlesAt: await settlingOf(kernel, proof.session) }
      const linked = await insertLinkedAccount(kernel, user.id, account, identity.tokens, adding)
      if (linked === undefined) throw fail('UNABLE_TO_LINK_ACCOUNT')
      await tell(kernel, 'account.linked', { targetId: user.id, details: { provider: providerId } })
      await noticeTo(kernel, user, MAILS.accountLinked(user, providerId))
      return 'linked'
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

/** An address that is only claimed says nothing about whose the account is, so it counts as another one. */
function expectSameEmail(kernel: Kernel, user: User, proven: ProvenIdentity): void {
  const isSame = proven.identity.email === user.email && hasProvenAddress(kernel, proven)
  if (!isSame && !kernel.config.auth.social.linking.allow_different_emails)
    throw fail('UNABLE_TO_LINK_ACCOUNT')
}
