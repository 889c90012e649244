import { choiceForm, textForm } from '../forms.ts'
import { choice, duration, integer, list, named, section } from '../setting.ts'

/** The permissions that a role of members may have: resource → actions. */
export const ORGANIZATION_ACTIONS = {
  organization: ['update', 'delete'],
  member: ['create', 'update', 'delete'],
  invitation: ['create', 'cancel'],
} as const

const roleNameForm = textForm(
  'role name',
  /^(?!(owner|admin|member)$)[a-z][a-z0-9_-]{0,39}$/,
  'a role name of at most 40 lower-case letters, digits, "-" and "_", other than owner, admin and member',
)

/** auth.md 9. */
export const organization = section('Organizations.', {
  roles: named(
    'Roles besides `owner`, `admin` and `member`.',
    roleNameForm,
    section('A role of members, and what it allows.', {
      organization: list(
        'Actions on the organization.',
        choiceForm<string>(ORGANIZATION_ACTIONS.organization),
      ),
      member: list('Actions on its members.', choiceForm<string>(ORGANIZATION_ACTIONS.member)),
      invitation: list('Actions on its invitations.', choiceForm<string>(ORGANIZATION_ACTIONS.invitation)),
    }),
  ),
  max_per_user: integer(
    'Organizations of a user; beyond it the user can create no more, but can still accept invitations.',
    { min: 1, max: 100_000 },
    { default: 100 },
  ),
  max_members: integer('Members of an organization.', { min: 1, max: 10_000_000 }, { default: 100 }),
  max_invitations: integer(
    'Pending invitations of an organization.',
    { min: 1, max: 100_000 },
    { default: 100 },
  ),
  initial: choice(
    'The organization that is active in a new session: the one that was active last in any session of the user, the only one of the user, or none.',
    ['last', 'only', 'none'],
    { default: 'last' },
  ),
  invitation_expires_in: duration('Lifetime of an invitation.', ['48h', '1m', '90d']),
})
