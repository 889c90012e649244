import { isRight } from '../../rights.ts'
import { choiceForm, type Form, textForm } from '../forms.ts'
import { flag, list, named, section } from '../setting.ts'

/** The permissions that a role of users may have: resource → actions. */
export const ADMIN_ACTIONS = {
  user: [
    'create', 'list', 'get', 'set-role', 'ban', 'impersonate', 'delete', 'set-password', 'set-email', 'update',
  ], // biome-ignore format: one line reads better
  session: ['list', 'revoke', 'delete'],
  organization: ['list', 'update', 'delete', 'manage-members'],
  audit: ['list'],
} as const

/** The parts of the operator's routes of the gateway that a role may open to a session. */
export const OPERATOR_RIGHTS = [
  'clients', 'keys', 'webhooks', 'routes', 'backups', 'metrics', 'settings', 'audit',
] as const // biome-ignore format: one line reads better
export type OperatorRight = (typeof OPERATOR_RIGHTS)[number]

/** In place of a client: every client. */
export const EVERY_CLIENT = '*'

const clientForm = textForm(
  'client name or *',
  /^(\*|[A-Za-z][A-Za-z0-9_-]{0,62})$/,
  'the name of a client, or * for every client',
)

const rightForm: Form<string> = {
  name: 'right',
  allowed: 'a right of docs/rights.md, like orders.read or gateway.query',
  parse: (text) => (isRight(text.trim()) ? text.trim() : undefined),
  write: (value) => value,
}

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
      organization: list('Actions on organizations.', choiceForm<string>(ADMIN_ACTIONS.organization)),
      audit: list('Actions on the audit trail.', choiceForm<string>(ADMIN_ACTIONS.audit)),
      operator: list(
        "Operator's routes of the gateway that a session of the role opens; `audit` includes the action `list` of the audit trail.",
        choiceForm<string>(OPERATOR_RIGHTS),
      ),
      gateway: named(
        'Rights on the gateway of a session of the role, by client.',
        clientForm,
        list('Rights, as of an API key that is bound to the client.', rightForm),
      ),
    }),
  ),
  user_ids: list('Ids of users who are admins, whatever role they have.', userIdForm),
  allow_impersonating_admins: flag('Whether an admin may impersonate another admin.', { default: false }),
})
