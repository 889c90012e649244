import type { Db } from '#kernel/db/connect.ts'
import { rowsById } from '#kernel/db/rows-by-id.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { deleteBackupCodes, listAppSecrets, updateAppSecret, updateToMail } from './store.ts'

/**
 * After a rotation of the secret: seals all secrets of authenticator apps with the current one, so that the previous one can be removed.
 * Backup codes are stored as hashes, and those of the previous secret end with it.
 */
export async function resealTotpSecrets({ db, secrets }: Kernel): Promise<void> {
  if (!secrets.isRotating) return
  for await (const { id, userId, secret } of sealedSecrets(db)) {
    const opened = secrets.isCurrent(secret) ? undefined : secrets.open('two-factor-secret', secret, userId)
    if (opened === undefined) continue
    await updateAppSecret(db, id, { from: secret, to: secrets.seal('two-factor-secret', opened, userId) })
  }
}

/** Seals for their users the secrets that have no owner yet (bind-sealed.ts). */
export async function bindTotpSecrets({ db, secrets }: Pick<Kernel, 'db' | 'secrets'>): Promise<void> {
  for await (const { id, userId, secret } of sealedSecrets(db)) {
    const opened = secrets.openUnbound('two-factor-secret', secret)
    if (opened === undefined) continue
    await updateAppSecret(db, id, { from: secret, to: secrets.seal('two-factor-secret', opened, userId) })
  }
}

/**
 * For a secret that is lost: an authenticator app whose secret cannot be opened becomes codes by mail, so that its user still has a second
 * factor and can sign in. Returns their number.
 */
export async function replaceUnreadableApps(db: Db, secrets: Secrets): Promise<number> {
  let replaced = 0
  for await (const { id, userId, secret } of sealedSecrets(db)) {
    if (secrets.open('two-factor-secret', secret, userId) !== undefined) continue
    await deleteBackupCodes(db, id)
    await updateToMail(db, id)
    replaced++
  }
  return replaced
}

const sealedSecrets = (db: Db) => rowsById((after, max) => listAppSecrets(db, after, max))
