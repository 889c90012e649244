import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { findUser, isBanned, type User, withoutExpiredBan } from '#identity/users.ts'
import type { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { anonymous, type ClaimSource, claimsOf, OTHERS_ONLY } from '../caller/caller-role.ts'
import { fail } from '../errors.ts'
import { findPlaceIn } from './store.ts'

/** Whose rows are asked for: a user's, in one of the user's organizations or in none, or those of a visitor or of anyone who is signed in. */
export type AskedSubject =
  | { readonly role: 'anonymous' | 'signed_in' }
  | { readonly userId: string; readonly organizationId?: string; readonly twoFactor?: boolean }

/** The role and claims of the subject. `refusal`: a request of the subject would be refused before it reaches the database. */
export type Subject = { readonly persona: Persona; readonly refusal?: Failure }

/** The subject as it is now, by the rules for a session that it would have. */
export async function findSubject(
  kernel: Kernel,
  asked: AskedSubject,
  security: RowLevelSecurity,
): Promise<Subject> {
  if ('userId' in asked) return userAs(kernel, asked, security)
  const persona =
    asked.role === 'anonymous'
      ? anonymous(security).persona
      : { role: security.signedInRole, claims: JSON.stringify(strangerAs(kernel)) }
  return { persona: { ...persona, readOnly: true } }
}

async function userAs(
  kernel: Kernel,
  { userId, organizationId, twoFactor }: Extract<AskedSubject, { userId: string }>,
  security: RowLevelSecurity,
): Promise<Subject> {
  const found = await findUser(kernel.db, 'id', userId)
  if (found === undefined) throw fail('user_not_found', { details: { user_id: userId } })
  const user = withoutExpiredBan(found, kernel.now())
  const place = await placeIn(kernel, user, organizationId)
  const hasFactor = twoFactor ?? user.twoFactorEnabled
  const source: ClaimSource = {
    user,
    organizationRole: place?.role ?? null,
    impersonator: undefined,
    session: {
      id: null,
      activeOrganizationId: organizationId ?? null,
      impersonatedBy: null,
      shown: hasFactor ? ['password', 'totp'] : ['password'],
    },
  }
  const claims = JSON.stringify(claimsOf(kernel, source))
  const isActive = hasFactor || place?.requireTwoFactor !== true
  const refusal =
    refusalOf(kernel, source, security) ?? (isActive ? undefined : fail('two_factor_required', OF_MEMBERS))
  return {
    persona: { role: security.signedInRole, claims, readOnly: true },
    ...(refusal !== undefined && { refusal }),
  }
}

async function placeIn({ db }: Kernel, { id }: User, organizationId: string | undefined) {
  if (organizationId === undefined) return undefined
  const place = await findPlaceIn(db, organizationId, id)
  if (place === undefined) throw fail('not_a_member', { details: { field: 'organization_id' } })
  return place
}

const OF_MEMBERS = { message: 'The organization is active only in sessions with a second factor' }

/** As the door of sessions and the gateway would refuse it. */
function refusalOf(kernel: Kernel, source: ClaimSource, security: RowLevelSecurity): Failure | undefined {
  if (isBanned(source.user, kernel.now()))
    return fail('invalid_session', { message: 'The user is banned and has no session' })
  if (lacksSecondFactor(kernel.config, source)) return fail('two_factor_required')
  return security.refusesSessions === true ? fail('invalid_session', OTHERS_ONLY) : undefined
}

/** Somebody who is signed in and whom no row names. */
const strangerAs = ({ now, random }: Kernel) => ({
  user_id: uuidv7(now(), random),
  session_id: null,
  role: 'user',
  organization_id: null,
  organization_role: null,
  two_factor: false,
  impersonated_by: null,
  is_anonymous: false,
})
