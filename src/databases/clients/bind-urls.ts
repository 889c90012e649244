import type { Db } from '#kernel/db/connect.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { listClients, resealClient } from './store.ts'

/** Seals for their clients the URLs that have no owner yet (src/bind-sealed.ts). */
export async function bindClientUrls(db: Db, secrets: Secrets): Promise<void> {
  for (const { id, sealedUrl } of await listClients(db)) {
    const url = sealedUrl === null ? undefined : secrets.openUnbound('client-url', sealedUrl)
    if (url === undefined || sealedUrl === null) continue
    await resealClient(db, id, 'sealedUrl', { from: sealedUrl, to: secrets.seal('client-url', url, id) })
  }
}
