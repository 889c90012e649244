import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createKey } from '#gateway/keys/keys.ts'
import { systemClock } from '#kernel/clock.ts'
import { connect } from '#kernel/db/connect.ts'
import { secureRandom } from '#kernel/random.ts'
import type { Databases } from '../control.ts'
import type { Context } from './context.ts'

/**
 * The key of the built-in client `default`, with all of its rights: issued at the first start into a file that only the
 * service's user can read. Undefined when there is no such client.
 */
export async function ensureDefaultKey(
  { config, log }: Context,
  { builtIn, controlUrl }: Databases,
): Promise<{ file: string; key: string } | undefined> {
  if (builtIn.default === undefined) return undefined
  const file = path.join(config.server.data_dir, 'default-key')
  if (!existsSync(file)) {
    await mkdir(config.server.data_dir, { recursive: true, mode: 0o700 })
    const control = connect({ url: controlUrl, max: 1, statementTimeout: 30_000, onError: () => {} })
    try {
      // The key counts only once its file is there: a key that nobody can read is of no use.
      await control.db.transaction().execute(async (db) => {
        const kernel = { db, random: secureRandom, now: systemClock }
        const { api_key } = await createKey(kernel, {
          name: 'default',
          client_name: 'default',
          rights: ['*'],
        })
        await writeFile(file, `${api_key}\n`, { mode: 0o600, flag: 'wx' })
      })
    } finally {
      await control.close()
    }
    log.debug({ event: 'default_key' }, `issued the key of client default into ${file}`)
  }
  return { file, key: (await readFile(file, 'utf8')).trim() }
}
