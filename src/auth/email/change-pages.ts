import type { MailFlow } from '../mailing/flow.ts'
import { CHANGE_MAIL, CONFIRM_CHANGE_MAIL } from './change-email.ts'
import { confirmEmailLink } from './follow-link.ts'
import { type ProofTexts, proofView } from './proof-view.ts'

/** The page of the link to the old address. */
export const CONFIRM_CHANGE_EMAIL: MailFlow<'confirm-change-email'> = {
  ...CONFIRM_CHANGE_MAIL,
  view: async () => ({
    title: 'changeTitle',
    paragraphs: ['changeOldText', 'changeOldNext'],
    forms: [{ fields: [], button: 'changeOldButton' }],
  }),
  async act(kernel, _link, { token, click }) {
    // This click proves only that the mail has arrived, so it brings no password.
    await confirmEmailLink(kernel, token, click, {})
    return { title: 'changeOldDone', text: 'changeOldDoneText' }
  },
}

/** The page of the link to the new address. */
export const CHANGE_EMAIL: MailFlow<'change-email'> = {
  ...CHANGE_MAIL,
  view: (kernel, link, click) => proofView(kernel, link, click, CHANGE_TEXTS),
  async act(kernel, _link, { token, click, values }) {
    const { admission } = await confirmEmailLink(kernel, token, click, values)
    return { title: 'changeNewDone', text: 'changeNewDoneText', admission }
  },
}

const CHANGE_TEXTS: ProofTexts = {
  title: 'changeTitle',
  text: 'changeNewText',
  button: 'changeNewButton',
  proveText: 'changeProveText',
  chooseText: 'changeChooseText',
  chooseFirstText: 'changeChooseFirstText',
  chooseButton: 'changeChooseButton',
}
