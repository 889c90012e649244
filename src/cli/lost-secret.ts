import { sql } from 'kysely'
import { replaceUnreadableApps } from '#auth/two-factor/reseal.ts'
import { deleteClient, listClients } from '#databases/clients/store.ts'
import { forgetClient } from '#gateway/keys/config.ts'
import { retireKeys } from '#gateway/keys/keys.ts'
import { dropUnreadableTokens } from '#identity/reseal-tokens.ts'
import { CLI } from '#kernel/audit/origin.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { clockOf, connectOnce, type Db } from '#kernel/db/connect.ts'
import { secureRandom } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'

/** Deletes all data that the current secrets cannot decrypt. Returns one line for each deletion. */
export async function dropSealed(url: string, secrets: Secrets): Promise<readonly string[]> {
  const control = connectOnce(url)
  try {
    return await control.db
      .transaction()
      .execute(async (db) => [
        ...(await dropClients(db, secrets)),
        ...(await dropMails(db, secrets)),
        ...(await dropProviderTokens(db, secrets)),
        ...(await replaceApps(db, secrets)),
      ])
  } finally {
    await control.close()
  }
}

/** Deletes clients with undecryptable URLs. Their keys are kept but deactivated. */
async function dropClients(db: Db, secrets: Secrets): Promise<string[]> {
  const lost = (await listClients(db)).filter(
    ({ sealedUrl }) => sealedUrl !== null && secrets.open('client-url', sealedUrl) === undefined,
  )
  const now = await clockOf(db)
  for (const { clientName } of lost) {
    await deleteClient(db, clientName, now())
    await forgetClient({ db }, clientName)
    await retireKeys({ db, now }, clientName)
    await recordAct({ db, now, random: secureRandom, origin: CLI }, 'client.removed', { clientName })
  }
  return lost.map(({ clientName }) => `dropped client ${clientName}: register it again`)
}

type QueuedJob = { readonly id: string; readonly sealed: string }

/** Deletes undecryptable mail jobs. The job queue's tables may not exist yet. */
async function dropMails(db: Db, secrets: Secrets): Promise<string[]> {
  const { rows: found } = await sql<{ there: boolean }>`
    select to_regclass('service_jobs.job') is not null as there`.execute(db)
  if (found[0]?.there !== true) return []
  const { rows } = await sql<QueuedJob>`
    select id, coalesce(data ->> 'mail', data ->> 'request') as sealed from service_jobs.job
    where name in ('send-mail', 'answer-mail-request') and state < 'completed'`.execute(db)
  const lost = rows.filter(({ sealed }) => secrets.open('mail', sealed) === undefined).map(({ id }) => id)
  if (lost.length === 0) return []
  await sql`delete from service_jobs.job where id = any(${lost}::uuid[])`.execute(db)
  return [`dropped ${lost.length} queued ${lost.length === 1 ? 'mail' : 'mails'}`]
}

async function dropProviderTokens(db: Db, secrets: Secrets): Promise<string[]> {
  const accounts = await dropUnreadableTokens(db, secrets, (await clockOf(db))())
  if (accounts === 0) return []
  return [
    `dropped the provider tokens of ${accounts} linked ${accounts === 1 ? 'account' : 'accounts'}: the next sign-in brings new ones`,
  ]
}

async function replaceApps(db: Db, secrets: Secrets): Promise<string[]> {
  const apps = await replaceUnreadableApps(db, secrets)
  if (apps === 0) return []
  return [
    `dropped the secrets of ${apps} authenticator ${apps === 1 ? 'app' : 'apps'}: their users sign in with codes by mail until they set one up again`,
  ]
}
