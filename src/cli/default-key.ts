import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createKey } from '#gateway/keys/keys.ts'
import { SYSTEM } from '#kernel/audit/origin.ts'
import { defaultKeyFile, unwritable } from '#kernel/data-folder.ts'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import { secureRandom } from '#kernel/random.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'
import type { Context } from './context.ts'

/** Path of the key file, and the key itself if it was issued just now. */
export type DefaultKey = { readonly file: string; readonly issued: string | undefined }

/**
 * Issues the key of the built-in client `default` at the first start, into a file that only the service's user can read. The key has all
 * rights, including those that no wildcard grants. Returns undefined if there is no such client.
 */
export async function ensureDefaultKey(
  { config, log }: Context,
  { builtIn, controlUrl }: ServiceDatabases,
): Promise<DefaultKey | undefined> {
  if (builtIn.default === undefined) return undefined
  const { data_dir } = config.server
  const file = defaultKeyFile(config)
  if (existsSync(file)) return { file, issued: undefined }
  try {
    await mkdir(data_dir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new Error(unwritable(data_dir, cause), { cause })
  }
  const control = connectOnce(controlUrl)
  try {
    const issued = await control.db.transaction().execute(async (db) => {
      const kernel = { db, random: secureRandom, now: await clockOf(db), origin: SYSTEM }
      const newKey = {
        name: 'default',
        client_name: 'default',
        rights: ['*', 'gateway.bypass_row_level_security', 'management.functions.write'],
      }
      const { api_key } = await createKey(kernel, { configured: new Set(['default']) }, newKey)
      // Write the file before the commit: a key that was committed without its file would be lost.
      await writeFile(file, `${api_key}\n`, { mode: 0o600, flag: 'wx' })
      return api_key
    })
    log.debug({ event: 'default_key' }, `issued the key of client default into ${file}`)
    return { file, issued }
  } finally {
    await control.close()
  }
}
