import { choiceForm, textForm } from '../forms.ts'
import { flag, list, named, section } from '../setting.ts'

/** The permissions that a role of users may have: resource → actions. */
export const ADMIN_ACTIONS = {
  user: [
    'create', 'list', 'get', 'set-role', 'ban', 'impersonate', 'delete', 'set-password', 'set-email', 'update',
  ], // biome-ignore format: one line reads better
  session: ['list', 'revoke', 'delete'],
  audit: ['list'],
} as const

const roleNameForm = textForm(
  'role name',
  /^(?!(user|admin)$)[a-z][a-z0-9_-]{0,39}$/,
  'a role name of at most 40 lower-case letters, digits, "-" and "_", other than user and admin',
)

const userIdForm = textForm(
  'user id',
  /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  'the id of a user, in lower case',
)

/** auth.md 10. */
export const admin = section('Administration of users.', {
  roles: named(
    'Roles besides `user` and `admin`.',
    roleNameForm,
    section('A role of users, and what it allows.', {
      user: list('Actions on users.', choiceForm<string>(ADMIN_ACTIONS.user)),
      session: list('Actions on sessions of users.', choiceForm<string>(ADMIN_ACTIONS.session)),
      audit: list('Actions on the audit trail.', choiceForm<string>(ADMIN_ACTIONS.audit)),
    }),
  ),
  user_ids: list('Ids of users who are admins, whatever role they have.', userIdForm),
  allow_impersonating_admins: flag('Whether an admin may impersonate another admin.', { default: false }),
})
