import { findPassword } from '#identity/accounts.ts'
import type { Ticket, TicketPurpose } from '#identity/tickets.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { confirmEmailLink, EMAIL_LINKS, type Followed } from '../email/email.ts'
import { type Click, type Filled, isOwnClick } from '../email/first-proof.ts'
import { fail, PROOF_FAILURES, REFUSED_ENTRY, REFUSED_PASSWORD } from '../errors.ts'
import type { OpenLink } from '../mail-tickets.ts'
import type { TextName } from '../pages/texts.ts'
import { resetPassword } from '../password/password.ts'
import { deleteByLink, deleteByLinkAndPassword } from '../profile/profile.ts'

export type Field = 'password' | 'newPassword'

export type Form = {
  /** Above the fields. */
  readonly says?: TextName
  readonly fields: readonly Field[]
  readonly button: TextName
  /** Under this heading, folded away. */
  readonly folded?: TextName
}

/** What the page of an open link shows. */
export type View = {
  readonly title: TextName
  readonly says: readonly TextName[]
  readonly forms: readonly Form[]
}

export type Done = {
  readonly title: TextName
  readonly says: TextName
  /** With the session that has begun, where one has. */
  readonly followed?: Followed
  /** The account of this browser's session is gone. */
  readonly isGone?: boolean
}

type Pressed = { readonly token: string; readonly click: Click; readonly filled: Filled }

/** A page with a button, `{auth_url}/confirm/NAME`, for links that are mailed. */
export type ConfirmFlow = {
  /** For the API reference. */
  readonly operation: { readonly id: string; readonly summary: string }
  readonly failures: readonly string[]
  readonly fields: readonly Field[]
  readonly purposes: readonly TicketPurpose[]
  /** What to do when the link is of no use any more. */
  readonly askAgain: TextName
  readonly view: (kernel: Kernel, link: OpenLink<TicketPurpose>, click: Click) => Promise<View>
  /** What the button does; what has failed is thrown. */
  readonly press: (kernel: Kernel, link: OpenLink<TicketPurpose>, pressed: Pressed) => Promise<Done>
}

/** Every flow that a mail begins: one entry each. Their mails and lives are in mail-links.ts. */
export const CONFIRM_FLOWS: Readonly<Record<string, ConfirmFlow>> = {
  'verify-email': {
    operation: { id: 'VerifyEmail', summary: 'Confirm an address' },
    failures: [...PROOF_FAILURES, ...REFUSED_PASSWORD, ...REFUSED_ENTRY],
    fields: ['password', 'newPassword'],
    purposes: ['verify-email'],
    askAgain: 'askAgainVerify',
    view: (kernel, link, click) =>
      link.user.emailVerified ? PLAIN_PROOF : viewOfProof(kernel, link, click, PROOF_TEXTS),
    async press(kernel, _link, { token, click, filled }) {
      const followed = await confirmEmailLink(kernel, token, click, filled)
      return { title: 'verifyDone', says: 'verifyDoneSays', followed }
    },
  },
  'change-email': {
    operation: { id: 'ChangeEmail', summary: 'Change an address' },
    failures: [...PROOF_FAILURES, ...REFUSED_PASSWORD],
    fields: ['password', 'newPassword'],
    purposes: EMAIL_LINKS.filter((purpose) => purpose !== 'verify-email'),
    askAgain: 'askAgainChange',
    view: (kernel, link, click) =>
      isLastStep(link.ticket)
        ? viewOfProof(kernel, link, click, CHANGE_TEXTS)
        : Promise.resolve(CHANGE_ALLOWED),
    async press(kernel, { ticket }, { token, click, filled }) {
      // Who allows the change proves nothing but that the mail came.
      await confirmEmailLink(kernel, token, click, isLastStep(ticket) ? filled : {})
      return isLastStep(ticket) ? CHANGE_DONE : CHANGE_BEGUN
    },
  },
  'delete-user': {
    operation: { id: 'DeleteUser', summary: 'Delete an account' },
    failures: [
      ...PROOF_FAILURES,
      'INVALID_RESET_TOKEN',
      'UNAUTHORIZED',
      'DELETE_USER_DISABLED',
      'LAST_ADMIN',
    ],
    fields: ['password'],
    purposes: ['delete-user'],
    askAgain: 'askAgainDelete',
    view: viewOfDeletion,
    async press(kernel, { user }, { token, click: { caller }, filled: { password = '' } }) {
      const own = caller?.user.id === user.id ? caller : undefined
      if (own === undefined && password === '') throw fail('PASSWORD_REQUIRED')
      if (own === undefined) await deleteByLinkAndPassword(kernel, token, password)
      else await deleteByLink(kernel, own, token)
      return { title: 'deleteDone', says: 'deleteDoneSays', isGone: own !== undefined }
    },
  },
  'reset-password': {
    operation: { id: 'ResetPassword', summary: 'Choose a new password' },
    failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED', 'INVALID_RESET_TOKEN', ...REFUSED_PASSWORD],
    fields: ['newPassword'],
    purposes: ['reset-password'],
    askAgain: 'askAgainReset',
    view: async () => ({
      title: 'resetTitle',
      says: ['resetSays'],
      forms: [{ fields: ['newPassword'], button: 'resetButton' }],
    }),
    async press(kernel, _link, { token, filled: { newPassword = '' } }) {
      await resetPassword(kernel, token, newPassword)
      return { title: 'resetDone', says: 'resetDoneSays' }
    },
  },
}

type ProofTexts = {
  readonly title: TextName
  readonly says: TextName
  readonly button: TextName
  readonly proveSays: TextName
  readonly chooseSays: TextName
  readonly chooseFirstSays: TextName
  readonly chooseButton: TextName
}

const PROOF_TEXTS: ProofTexts = {
  title: 'verifyTitle',
  says: 'verifySays',
  button: 'verifyButton',
  proveSays: 'proveSays',
  chooseSays: 'chooseSays',
  chooseFirstSays: 'chooseFirstSays',
  chooseButton: 'chooseButton',
}

const CHANGE_TEXTS: ProofTexts = {
  title: 'changeTitle',
  says: 'changeNewSays',
  button: 'changeNewButton',
  proveSays: 'changeProveSays',
  chooseSays: 'changeChooseSays',
  chooseFirstSays: 'changeChooseFirstSays',
  chooseButton: 'changeChooseButton',
}

const plain = ({ title, says, button }: ProofTexts): View => ({
  title,
  says: [says],
  forms: [{ fields: [], button }],
})
const PLAIN_PROOF = Promise.resolve(plain(PROOF_TEXTS))

/** Only a click that may come from another person than the one who set the password is asked for it. */
async function viewOfProof(
  kernel: Kernel,
  { user, ticket }: OpenLink<TicketPurpose>,
  click: Click,
  texts: ProofTexts,
): Promise<View> {
  if (isOwnClick(user, ticket, click)) return plain(texts)
  const { title, button, chooseButton, proveSays, chooseSays, chooseFirstSays } = texts
  const choose = { fields: ['newPassword'], button: chooseButton } as const
  if ((await findPassword(kernel.db, user.id)) === undefined)
    return { title, says: [chooseFirstSays], forms: [choose] }
  return {
    title,
    says: [proveSays],
    forms: [
      { fields: ['password'], button },
      { ...choose, says: chooseSays, folded: 'chooseInstead' },
    ],
  }
}

const isLastStep = ({ purpose }: Ticket<TicketPurpose>): boolean => purpose === 'change-email'

const CHANGE_ALLOWED: View = {
  title: 'changeTitle',
  says: ['changeOldSays', 'changeOldNext'],
  forms: [{ fields: [], button: 'changeOldButton' }],
}
const CHANGE_BEGUN: Done = { title: 'changeOldDone', says: 'changeOldDoneSays' }
const CHANGE_DONE: Done = { title: 'changeNewDone', says: 'changeNewDoneSays' }

async function viewOfDeletion(
  kernel: Kernel,
  { user }: OpenLink<TicketPurpose>,
  { caller }: Click,
): Promise<View> {
  const [title, button] = ['deleteTitle', 'deleteButton'] as const
  if (caller?.user.id === user.id) return { title, says: ['deleteSays'], forms: [{ fields: [], button }] }
  if ((await findPassword(kernel.db, user.id)) === undefined)
    return { title, says: ['deleteSays', 'deleteSignInSays'], forms: [] }
  return {
    title,
    says: ['deleteSays', 'deletePasswordSays'],
    forms: [{ fields: ['password'], button }],
  }
}
