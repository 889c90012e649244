import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'

export type DeviceStatus = 'pending' | 'approved' | 'denied'

/** A device that has asked for a session. */
export type Device = {
  readonly deviceHash: Buffer
  readonly clientId: string
  readonly status: DeviceStatus
  readonly expiresAt: Date
}

type NewDevice = Omit<Device, 'status'> & {
  readonly userCodeHash: Buffer
  /** Milliseconds. */
  readonly pollInterval: number
  readonly createdAt: Date
}

/** False when another device has this user code. */
export async function insertDevice(db: Db, device: NewDevice): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await db
    .insertInto('deviceAuthorization')
    .values({ ...device, nextPollAt: device.createdAt })
    .onConflict((conflict) => conflict.constraint('device_authorization_user_code_key').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

export const findDevice = async (db: Db, userCodeHashes: readonly Buffer[]): Promise<Device | undefined> =>
  (await db
    .selectFrom('deviceAuthorization')
    .select(['deviceHash', 'clientId', 'status', 'expiresAt'])
    .where('userCodeHash', 'in', userCodeHashes)
    .executeTakeFirst()) as Device | undefined // a constraint has the words of the status

/** Answers a device that nobody has answered before: of any number of concurrent answers, one succeeds. */
export async function updateStatus(
  db: Db,
  deviceHash: Buffer,
  status: Exclude<DeviceStatus, 'pending'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('deviceAuthorization')
    .set({ status })
    .where('deviceHash', '=', deviceHash)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** RFC 8628, 3.5; milliseconds. */
const SLOWER = 5_000

/**
 * Notes that the device has polled. A poll before its time makes the interval of this one and all later ones longer. Concurrent polls are
 * judged one after the other, since each locks the row first. Undefined for a code that is not this client's.
 */
export async function pollDevice(
  db: Db,
  { deviceHash, clientId }: Pick<Device, 'deviceHash' | 'clientId'>,
  now: Date,
): Promise<(Pick<Device, 'status' | 'expiresAt'> & { readonly isEarly: boolean }) | undefined> {
  const { rows } = await sql<Pick<Device, 'status' | 'expiresAt'> & { readonly isEarly: boolean }>`
    with before as materialized (
      select device_hash, next_poll_at > ${now} as is_early,
        poll_interval + case when next_poll_at > ${now} then ${SLOWER}::integer else 0 end as poll_interval
      from service.device_authorization where device_hash = ${deviceHash} and client_id = ${clientId} for no key update)
    update service.device_authorization d
      set poll_interval = before.poll_interval, next_poll_at = ${now}::timestamptz + before.poll_interval * interval '1 millisecond'
      from before where d.device_hash = before.device_hash
      returning d.status, d.expires_at, before.is_early`.execute(db)
  return rows[0]
}

/** Deletes at most `batch` devices whose code has expired before this time; returns their number. */
export async function deleteExpiredDevices(db: Db, before: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('deviceAuthorization')
    .where('deviceHash', 'in', (of) =>
      of.selectFrom('deviceAuthorization').select('deviceHash').where('expiresAt', '<=', before).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
