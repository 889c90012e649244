import { sql } from 'kysely'
import { isUsableSite, passkeySite } from '#kernel/config/passkey-site.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isCheckable } from './passwords.ts'
import { hasProvenEmail, type User } from './users.ts'

/**
 * Would the user have no usable way of signing in without this row? `id` is that of an account or a passkey. A way that the settings or a
 * demand on the user have made useless does not count: it would lock the user out when it alone is left.
 *
 * The user's row has to be locked (proof.ts), as it is by every verb that removes a way in: then no other one can go before this
 * transaction ends.
 */
export async function isLastWayIn(kernel: Kernel, user: User, id: string): Promise<boolean> {
  const { db } = kernel
  const { id: userId } = user
  if (!db.isTransaction) throw new Error('a way in is removed in the transaction that has locked the user')
  const { rows } = await sql<WayIn>`
    select provider_id, password, must_change_password, null as rp_id
      from service.account where user_id = ${userId} and id <> ${id}
    union all
    select null, null, false, rp_id from service.passkey where user_id = ${userId} and id <> ${id}`.execute(
    db,
  )
  return !rows.some((way) => isUsable(kernel, way)) && !(await entersByMail(kernel, user))
}

/** Whose second factor is a code by mail has to sign in with the password. */
async function entersByMail({ db, config }: Kernel, user: User): Promise<boolean> {
  const { magic_link, email_otp } = config.auth
  if (!hasProvenEmail(user) || !(magic_link.enabled || email_otp.enabled)) return false
  const found = await db
    .selectFrom('twoFactor')
    .select('id')
    .where('userId', '=', user.id)
    .where('inForce', '=', true)
    .where('method', '=', 'otp')
    .executeTakeFirst()
  return found === undefined
}

/** The columns of an account, or of a passkey: then `providerId` is null. */
type WayIn = {
  readonly providerId: string | null
  readonly password: string | null
  readonly mustChangePassword: boolean
  readonly rpId: string | null
}

function isUsable(kernel: Kernel, { providerId, password, mustChangePassword, rpId }: WayIn): boolean {
  const { config } = kernel
  if (providerId === null) {
    const site = passkeySite(config, kernel.publicUrl())
    return isUsableSite(site) && (rpId ?? site.rpId) === site.rpId
  }
  if (providerId !== 'credential') return Object.hasOwn(config.auth.social.providers, providerId)
  // A password that is refused here signs in only after a reset by mail.
  return password !== null && !mustChangePassword && isCheckable(config, password)
}
