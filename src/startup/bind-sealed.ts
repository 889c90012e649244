import { sql } from 'kysely'
import { bindTotpSecrets } from '#auth/two-factor/reseal.ts'
import { bindClientUrls } from '#databases/clients/bind-urls.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bindQueuedMails } from '#kernel/mail/queued-mails.ts'

/**
 * Milliseconds after the first time in which values without an owner are still bound: processes of the old version may run beside the new
 * ones until they are replaced.
 */
const GRACE = 86_400_000

/**
 * Binds to its owner what a former version has sealed without one, so that a value copied to another row opens nowhere. Afterwards it is
 * not done again: who can write into the database could have a copied value bound to the wrong row. A value that no secret opens stays.
 */
export async function bindSealed({
  db,
  secrets,
  now,
}: Pick<Kernel, 'db' | 'secrets' | 'now'>): Promise<void> {
  const time = now()
  const { rows } = await sql`
    select from service.installation
      where sealed_for_owners_at is null or sealed_for_owners_at > ${new Date(time.getTime() - GRACE)}`.execute(
    db,
  )
  if (rows.length === 0) return
  await bindClientUrls(db, secrets)
  await bindTotpSecrets({ db, secrets })
  await bindQueuedMails(db, secrets)
  await sql`update service.installation set sealed_for_owners_at = ${time} where sealed_for_owners_at is null`.execute(
    db,
  )
}
