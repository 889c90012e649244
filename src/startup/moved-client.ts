import { listProtected } from '#databases/clients/protection.ts'
import type { Config } from '#kernel/config/config.ts'
import { BUILT_IN_CLIENT } from '#kernel/config/sections/database.ts'
import { connectOnce } from '#kernel/db/connect.ts'

/**
 * Refuses to start when row-level security of the built-in client was switched on over HTTP, and the client has an address of its own now:
 * for that one the setting decides alone, and without a word of the operator keys that are safe in pages would show every row.
 */
export async function expectDecided(controlUrl: string, { clients }: Pick<Config, 'clients'>): Promise<void> {
  const { url, row_level_security: security } = clients[BUILT_IN_CLIENT] ?? {}
  if (url === undefined || security?.enabled !== undefined) return
  const control = connectOnce(controlUrl)
  try {
    if (!(await listProtected(control.db)).has(BUILT_IN_CLIENT)) return
  } finally {
    await control.close()
  }
  const setting = `clients.${BUILT_IN_CLIENT}.row_level_security.enabled`
  throw new Error(
    `Row-level security of the client ${BUILT_IN_CLIENT} was switched on over HTTP, and clients.${BUILT_IN_CLIENT}.url gives it another address, ` +
      `for which the setting decides. Set ${setting}: true, or false if its keys may see every row.`,
  )
}
