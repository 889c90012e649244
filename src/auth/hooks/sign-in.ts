import { fieldsOf } from '#identity/custom-fields.ts'
import type { Session } from '#identity/sessions.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { outsideAnswer } from '#kernel/outside-answers.ts'
import type { Way } from '../door/way.ts'
import { translatingRefusals } from './refusals.ts'
import { sourceOf, toldEmail } from './source.ts'

type SignIn = Pick<Session, 'amr'> & { readonly way: Way }

/**
 * The hooks before a sign-in, in the transaction that begins its session, after all that could refuse it. Every file that begins a session of a
 * user's own calls it (test/architecture.test.ts).
 */
export function expectConsentToSignIn(kernel: Kernel, user: User, { way, amr }: SignIn): void {
  if (!kernel.hooks.has('sign_in')) return
  const data = { user: shownUser(user), method: way, amr: amr ?? [], ...sourceOf(kernel) }
  outsideAnswer(kernel, `sign_in ${JSON.stringify(data)}`, (kernel) =>
    translatingRefusals(kernel, { action: 'sign_in.failed', targetId: user.id }, () =>
      kernel.hooks.ask('sign_in', { data, address: kernel.origin.ipAddress }, () => {}),
    ),
  )
}

type ShownUser = Pick<User, 'id' | 'email' | 'emailVerified' | 'name' | 'role' | 'isAnonymous' | 'fields'>

export const shownUser = (user: ShownUser) => ({
  id: user.id,
  email: toldEmail(user.email),
  email_verified: user.emailVerified,
  name: user.name,
  role: user.role,
  is_anonymous: user.isAnonymous,
  fields: fieldsOf(user),
})
