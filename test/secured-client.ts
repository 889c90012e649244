import { randomBytes } from 'node:crypto'
import { testDatabase, testServerUrl, withClient } from './database.ts'

/**
 * A database with the two roles of callers, and the settings of a client with row-level security on it. Roles are global to the server, which
 * other test files use at the same time, so their names are unique. `drop` after the service has stopped.
 */
export async function createSecuredClient(more: object = {}) {
  const suffix = randomBytes(4).toString('hex')
  const roles = { anon: `anon_${suffix}`, member: `authenticated_${suffix}` }
  const database = await testDatabase()
  const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
  const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
  await onServer(`create role ${roles.anon} nologin; create role ${roles.member} nologin;
    grant ${roles.anon}, ${roles.member} to "${new URL(database.url).username}"`)
  return {
    database,
    roles,
    sql,
    /** For a service whose built-in client it is. */
    builtIn: {
      url: database.url,
      callerRoles: { anonymousRole: roles.anon, signedInRole: roles.member },
    },
    settings: {
      url: database.url,
      row_level_security: {
        ...{ enabled: true, anonymous_role: roles.anon, signed_in_role: roles.member },
        ...more,
      },
    },
    async drop() {
      await database.drop()
      await onServer(`drop role ${roles.anon}; drop role ${roles.member}`)
    },
  }
}
