import { type RawBuilder, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { deleteExpired } from '#kernel/db/delete-expired.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { tokenHash } from './tokens.ts'
import type { User } from './users.ts'

/** Of a known device, from its last sign-in; milliseconds. */
export const KNOWN_DEVICE_LIFETIME = 180 * 86_400_000
/** Of one user. The one that has not signed in for longest goes. */
const MAX_DEVICES = 20

/** Where a request comes from, besides its address. */
export type Source = {
  /** A live session of the user whom the request is about. */
  readonly sessionId?: string | undefined
  /** The value of the browser's known-device cookie, or of the client's header. */
  readonly knownDevice?: string | undefined
}

/**
 * The name of the bucket in which a session or a known device of the user counts by itself. Undefined for a stranger. The lookup does not
 * depend on whether there is a user.
 */
export async function ownBucket(
  kernel: Kernel,
  userId: string,
  { sessionId, knownDevice }: Source,
): Promise<string | undefined> {
  if (sessionId !== undefined) return `session:${sessionId}`
  const device = identifierIn(kernel, knownDevice)
  const found = device === undefined ? undefined : await findKnownDevice(kernel, userId, device)
  return found === undefined ? undefined : `device:${found}`
}

async function findKnownDevice({ db, now }: Kernel, userId: string, device: string) {
  const found = await db
    .selectFrom('knownDevice')
    .select('id')
    .where('userId', '=', userId)
    .where('deviceHash', '=', tokenHash(device))
    .where('expiresAt', '>', now())
    .executeTakeFirst()
  return found?.id
}

/** The statements that note a device, for the one that starts the session, and the value of its cookie. */
export type DeviceNote = {
  readonly deleteSurplus: RawBuilder<unknown>
  /** Returns the `device_hash` that was noted. */
  readonly insert: RawBuilder<unknown>
  cookieOf(noted: Buffer): string
}

/**
 * Notes that the user, whose row is locked, signs in on this device. An identifier that no account knows any more is replaced, since the
 * user may have ended it because it was stolen; so is one that only others know, and that is older than the end of the user's devices.
 */
export function noteDevice(
  kernel: Kernel,
  { id: userId, devicesEndedAt }: Pick<User, 'id' | 'devicesEndedAt'>,
  presented: string | undefined,
): DeviceNote {
  const now = kernel.now()
  const fresh = randomToken(kernel.random)
  const former = identifierIn(kernel, presented)
  const [freshHash, formerHash] = [tokenHash(fresh), former === undefined ? undefined : tokenHash(former)]
  const isEnded = devicesEndedAt === null ? sql`false` : sql`d.created_at <= ${devicesEndedAt}`
  const born =
    formerHash === undefined
      ? sql`select ${freshHash}::bytea as hash, ${now}::timestamptz as at`
      : sql`select case when count(*) > 0 then ${formerHash}::bytea else ${freshHash}::bytea end as hash, coalesce(min(d.created_at), ${now}::timestamptz) as at
          from service.known_device d
          where d.device_hash = ${formerHash} and d.expires_at > ${now} and (d.user_id = ${userId} or not ${isEnded})`
  const expiresAt = new Date(now.getTime() + KNOWN_DEVICE_LIFETIME)
  return {
    deleteSurplus: sql`
      delete from service.known_device where id in (
        select id from service.known_device where user_id = ${userId} and device_hash <> ${formerHash ?? freshHash}
        order by expires_at desc, id desc offset ${MAX_DEVICES - 1} limit 1000)`,
    insert: sql`
      insert into service.known_device (id, user_id, device_hash, expires_at, created_at)
      select ${uuidv7(now, kernel.random)}::uuid, ${userId}::uuid, born.hash, ${expiresAt}::timestamptz, born.at from (${born}) born
      on conflict (user_id, device_hash) do update set expires_at = excluded.expires_at
      returning device_hash`,
    cookieOf(noted) {
      const isFormer = formerHash !== undefined && noted.equals(formerHash)
      return kernel.secrets.seal('known-device', isFormer && former !== undefined ? former : fresh, null)
    },
  }
}

/** Undefined when the value was not made by this service. */
const identifierIn = ({ secrets }: Kernel, value: string | undefined): string | undefined =>
  value === undefined ? undefined : secrets.open('known-device', value, null)

/** With the user's row locked. `exceptOf`: the browser with this cookie stays known. */
export async function deleteKnownDevices(kernel: Kernel, userId: string, exceptOf?: string): Promise<void> {
  const kept = tokenHash(identifierIn(kernel, exceptOf) ?? '')
  await kernel.db
    .with('ended', (with_) =>
      with_.updateTable('user').set({ devicesEndedAt: kernel.now() }).where('id', '=', userId),
    )
    .deleteFrom('knownDevice')
    .where('userId', '=', userId)
    .where('deviceHash', '!=', kept)
    .execute()
}

/** One that signs in meanwhile stays. */
export const deleteExpiredKnownDevices = (db: Db, before: Date, batch: number): Promise<number> =>
  deleteExpired(db, { table: 'service.known_device', key: 'id', before, batch })
