import { type Account, listAccounts } from '#identity/accounts.ts'
import { listPasskeys, type Passkey } from '#identity/passkeys.ts'
import { type FactorInForce, findFactorInForce } from '#identity/second-factor.ts'
import { countTrustedDevices } from '#identity/trusted-devices.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { actOnUser } from './act-on-user.ts'
import { TO } from './permissions.ts'

type Factors = {
  readonly twoFactor: FactorInForce | null
  readonly passkeys: Passkey[]
  readonly trustedDevices: number
}

/** Oldest first. They tell how an account is entered, so no one reads those of a user who may do more. */
export const listUserAccounts = (kernel: Kernel, caller: Caller, userId: string): Promise<Account[]> =>
  actOnUser(kernel, caller, { permission: TO.GET, userId }, ({ db }, { user }) => listAccounts(db, user.id))

/** In force: a factor that was begun and not confirmed is none. */
export const listUserFactors = (kernel: Kernel, caller: Caller, userId: string): Promise<Factors> =>
  actOnUser(kernel, caller, { permission: TO.GET, userId }, async ({ db, now }, { user }) => ({
    twoFactor: (await findFactorInForce(db, user.id)) ?? null,
    passkeys: await listPasskeys(db, user.id),
    trustedDevices: await countTrustedDevices(db, user.id, now()),
  }))
