import { sql } from 'kysely'
import { replaceUnreadableApps } from '#auth/two-factor/reseal.ts'
import { sealedUrls } from '#databases/clients/addresses.ts'
import { listClients, resealClient } from '#databases/clients/store.ts'
import { retireClient } from '#gateway/clients/clients.ts'
import { deactivateUnreadable } from '#gateway/webhooks/reseal.ts'
import { retireAllJwtKeys } from '#identity/jwt/key-store.ts'
import { dropUnreadableTokens } from '#identity/reseal-tokens.ts'
import { CLI } from '#kernel/audit/origin.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { outlastLeases } from '#kernel/db/coherence.ts'
import { clockOf, connectOnce, type Db } from '#kernel/db/connect.ts'
import { listQueuedMails } from '#kernel/mail/queued-mails.ts'
import { secureRandom } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'

/** Deletes all data that the current secrets cannot decrypt. Returns one line for each deletion. */
export async function dropSealed(url: string, secrets: Secrets): Promise<readonly string[]> {
  const control = connectOnce(url)
  try {
    const lines = await control.db
      .transaction()
      .execute(async (db) => [
        ...(await dropClients(db, secrets)),
        ...(await deactivateWebhooks(db, secrets)),
        ...(await dropMails(db, secrets)),
        ...(await dropProviderTokens(db, secrets)),
        ...(await replaceApps(db, secrets)),
        ...(await retireKeys(db)),
      ])
    if (lines.length > 0) await outlastLeases(control.db)
    return lines
  } finally {
    await control.close()
  }
}

/** Deletes clients with undecryptable URLs, as over HTTP. */
async function dropClients(db: Db, secrets: Secrets): Promise<string[]> {
  const rows = (await listClients(db)).map((row) => ({ ...row, opened: sealedUrls(secrets, row) }))
  const isLost = ({ sealedUrl, opened }: (typeof rows)[number]) =>
    sealedUrl !== null && opened.url === undefined
  const recorder = await recorderOn(db)
  const lost = rows.filter(isLost)
  for (const { clientName } of lost) await retireClient(recorder, clientName)
  const lines = lost.map(({ clientName }) => `dropped client ${clientName}: register it again`)
  for (const row of rows) {
    const { id, clientName, sealedDirectUrl: from, opened } = row
    if (isLost(row) || from === null || opened.direct_url !== undefined) continue
    await resealClient(db, id, 'sealedDirectUrl', { from, to: null })
    lines.push(`dropped the direct_url of client ${clientName}: set it again`)
  }
  return lines
}

const recorderOn = async (db: Db) => ({ db, now: await clockOf(db), random: secureRandom, origin: CLI })

/** A webhook cannot sign without its secret. */
async function deactivateWebhooks(db: Db, secrets: Secrets): Promise<string[]> {
  const recorder = await recorderOn(db)
  const reason = 'Its secret was sealed under a SERVICE_SECRET that is lost'
  const ids = await deactivateUnreadable(db, secrets, { reason, now: recorder.now() })
  for (const id of ids)
    await recordAct(recorder, 'webhook.deactivated', { targetId: id, details: { reason } })
  return ids.map(
    (id) => `set webhook ${id} inactive: rotate its secret, set its headers again and activate it`,
  )
}

/** Deletes undecryptable mail jobs. */
async function dropMails(db: Db, secrets: Secrets): Promise<string[]> {
  const queued = await listQueuedMails(db)
  const lost = queued
    .filter(({ id, purpose, sealed }) => secrets.open(purpose, sealed, id) === undefined)
    .map(({ id }) => id)
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

/** All of them: whoever has found the lost secret can open them. */
async function retireKeys(db: Db): Promise<string[]> {
  const keys = await retireAllJwtKeys(db)
  if (keys === 0) return []
  return [
    `retired ${keys} ${keys === 1 ? 'key' : 'keys'} of JSON web tokens: new ones are made, which verifiers fetch`,
  ]
}

async function replaceApps(db: Db, secrets: Secrets): Promise<string[]> {
  const apps = await replaceUnreadableApps(db, secrets)
  if (apps === 0) return []
  return [
    `dropped the secrets of ${apps} authenticator ${apps === 1 ? 'app' : 'apps'}: their users sign in with codes by mail until they set one up again`,
  ]
}
