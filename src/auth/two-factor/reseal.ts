import type { Db } from '#kernel/db/connect.ts'
import { rowsById } from '#kernel/db/rows-by-id.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'

/**
 * After a rotation of the secret: seals all secrets of authenticator apps with the current one, so that the previous one can be removed.
 * Backup codes are stored as hashes, and those of the previous secret end with it.
 */
export async function resealTotpSecrets({ db, secrets }: Kernel): Promise<void> {
  if (!secrets.isRotating) return
  for await (const { id, secret } of sealedSecrets(db)) {
    const opened = secrets.isCurrent(secret) ? undefined : secrets.open('two-factor-secret', secret)
    if (opened === undefined) continue
    const sealed = secrets.seal('two-factor-secret', opened)
    await db
      .updateTable('twoFactor')
      .set({ secret: sealed })
      .where('id', '=', id)
      .where('secret', '=', secret)
      .execute()
  }
}

/**
 * For a secret that is lost: an authenticator app whose secret cannot be opened becomes codes by mail, so that its user still has a second
 * factor and can sign in. Returns their number.
 */
export async function replaceUnreadableApps(db: Db, secrets: Secrets): Promise<number> {
  let replaced = 0
  for await (const { id, secret } of sealedSecrets(db)) {
    if (secrets.open('two-factor-secret', secret) !== undefined) continue
    await db.deleteFrom('backupCode').where('twoFactorId', '=', id).execute()
    await db.updateTable('twoFactor').set({ method: 'otp', secret: null }).where('id', '=', id).execute()
    replaced++
  }
  return replaced
}

const sealedSecrets = (db: Db) =>
  rowsById((after, max) =>
    db
      .selectFrom('twoFactor')
      .select(['id', 'secret'])
      .where('id', '>', after)
      .where('secret', 'is not', null)
      .orderBy('id')
      .limit(max)
      .$narrowType<{ secret: string }>()
      .execute(),
  )
