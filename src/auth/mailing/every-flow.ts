import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { CHANGE_EMAIL, CONFIRM_CHANGE_EMAIL } from '../email/change-pages.ts'
import { VERIFY_EMAIL } from '../email/verification.ts'
import { SIGN_IN } from '../magic-link/magic-link.ts'
import { RESET_PASSWORD } from '../password/reset.ts'
import { DELETE_USER } from '../profile/delete-account.ts'
import type { MailFlow } from './flow.ts'

/** Every link that is mailed, by the purpose of its ticket. */
export const MAIL_FLOWS = {
  'verify-email': VERIFY_EMAIL,
  'confirm-change-email': CONFIRM_CHANGE_EMAIL,
  'change-email': CHANGE_EMAIL,
  'delete-user': DELETE_USER,
  'reset-password': RESET_PASSWORD,
  'sign-in': SIGN_IN,
} as const satisfies { readonly [P in MailedPurpose]?: MailFlow<P> }
