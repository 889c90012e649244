import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { tokenHash } from './tokens.ts'

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

/**
 * Notes that the user has signed in on this device, with the user's row locked; returns the value of its cookie. An identifier that no
 * account knows any more is replaced, since the user may have ended it because it was stolen.
 */
export async function rememberDevice(
  kernel: Kernel,
  userId: string,
  presented: string | undefined,
): Promise<string> {
  const now = kernel.now()
  const fresh = randomToken(kernel.random)
  const former = identifierIn(kernel, presented) ?? fresh
  const id = uuidv7(now, kernel.random)
  const expiresAt = new Date(now.getTime() + KNOWN_DEVICE_LIFETIME)
  const { rows } = await sql<{ readonly deviceHash: Buffer }>`
    with surplus as (
      delete from service.known_device where id in (
        select id from service.known_device where user_id = ${userId} and device_hash <> ${tokenHash(former)}
        order by expires_at desc, id desc offset ${MAX_DEVICES - 1} limit 1000))
    insert into service.known_device (id, user_id, device_hash, expires_at, created_at)
      select ${id}::uuid, ${userId}::uuid,
        case when exists (select from service.known_device where device_hash = ${tokenHash(former)} and expires_at > ${now})
          then ${tokenHash(former)}::bytea else ${tokenHash(fresh)}::bytea end,
        ${expiresAt}::timestamptz, ${now}::timestamptz
      on conflict (user_id, device_hash) do update set expires_at = excluded.expires_at
      returning device_hash`.execute(kernel.db)
  const isFormer = rows[0]?.deviceHash.equals(tokenHash(former)) === true
  return kernel.secrets.seal('known-device', isFormer ? former : fresh, null)
}

/** Undefined when the value was not made by this service. */
const identifierIn = ({ secrets }: Kernel, value: string | undefined): string | undefined =>
  value === undefined ? undefined : secrets.open('known-device', value, null)

/** `exceptOf`: the browser with this cookie stays known. */
export async function deleteKnownDevices(kernel: Kernel, userId: string, exceptOf?: string): Promise<void> {
  const kept = tokenHash(identifierIn(kernel, exceptOf) ?? '')
  await kernel.db
    .deleteFrom('knownDevice')
    .where('userId', '=', userId)
    .where('deviceHash', '!=', kept)
    .execute()
}

/** Deletes at most `batch` expired devices; returns their number. */
export async function deleteExpiredKnownDevices(db: Db, now: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('knownDevice')
    .where('id', 'in', (of) =>
      of.selectFrom('knownDevice').select('id').where('expiresAt', '<=', now).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
