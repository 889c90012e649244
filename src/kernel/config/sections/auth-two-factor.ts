import { Type } from 'typebox'
import { webUrlForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { list, section, text } from '../setting.ts'

const roleForm = textForm('role', /^[A-Za-z0-9_-]{1,64}$/, 'the name of a role, like admin')

/** auth.md 7. */
export const twoFactor = section('Second factors.', {
  required_for: list(
    'Roles whose users need a second factor. A session that has not shown one opens little more than showing it, or setting up a first one.',
    roleForm,
  ),
  page_url: Type.Optional(
    text(
      'Page of your application that asks for the second factor after a sign-in that redirects; its query has `twoFactorRedirect` and `methods`.',
      { absent: 'the callback URL' },
      webUrlForm,
    ),
  ),
})
