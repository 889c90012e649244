import { findPassword } from '#identity/accounts.ts'
import type { UserPurpose } from '#identity/ticket-purposes.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { OpenLink, View } from '../mailing/flow.ts'
import type { LinkClick } from '../mailing/link-click.ts'
import type { TextName } from '../pages/texts.ts'
import { isOwnClick, waitingPassword } from './first-proof.ts'

/** Texts of a page for the first proof of an address. */
export type ProofTexts = {
  readonly title: TextName
  readonly text: TextName
  readonly button: TextName
  readonly proveText: TextName
  readonly chooseText: TextName
  readonly chooseFirstText: TextName
  readonly chooseButton: TextName
}

/** The page asks for the account's password only where the click may come from another person than the one who set it. */
export async function proofView(
  kernel: Kernel,
  { user, ticket }: OpenLink<UserPurpose>,
  click: LinkClick,
  texts: ProofTexts,
): Promise<View> {
  if (isOwnClick(user, ticket, click)) return plainView(texts)
  const { title, button, chooseButton, proveText, chooseText, chooseFirstText } = texts
  const choose = { fields: ['newPassword'], button: chooseButton } as const
  if ((waitingPassword(ticket) ?? (await findPassword(kernel.db, user.id))) === undefined)
    return { title, paragraphs: [chooseFirstText], forms: [choose] }
  return {
    title,
    paragraphs: [proveText],
    forms: [
      { fields: ['password'], button },
      { ...choose, text: chooseText, folded: 'chooseInstead' },
    ],
  }
}

export const plainView = ({ title, text, button }: Pick<ProofTexts, 'title' | 'text' | 'button'>): View => ({
  title,
  paragraphs: [text],
  forms: [{ fields: [], button }],
})
