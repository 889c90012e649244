import pg from 'pg'
import { unlessAborted } from '#kernel/abort.ts'
import { embeddedFolder, noDatabase, openSuperuserPassword } from '#kernel/data-folder.ts'
import { builtInDatabases, builtInNames, ensureBuiltIn } from '#kernel/db/built-in-databases.ts'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { hasDatabase } from '#kernel/db/embedded/replacement.ts'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import type { InstallationState, Standing } from '#kernel/db/installation.ts'
import { provision } from '#kernel/db/provision.ts'
import {
  inspectControl,
  type OpenedServer,
  type OpenOptions,
  recordCurrentSecret,
  separateAudit,
  settleInstallation,
  withClient,
} from './control-database.ts'

/** Name of the embedded server's control database and of its owner. */
export const CONTROL = 'gatehouse'

export async function openEmbedded(options: OpenOptions): Promise<OpenedServer> {
  const { config, createsMissing, random, report, signal } = options
  const dir = embeddedFolder(config)
  if (!createsMissing && !hasDatabase(dir)) throw noDatabase(config)
  const { password, keep } = openSuperuserPassword(config, random)
  const running = options.join === true ? await joinEmbedded(dir, password) : undefined
  const server = running ?? (await startEmbedded({ dir, password, report, signal }))
  try {
    if (createsMissing) keep()
    const superuserUrl = server.url('postgres', password, CONTROL)
    const embedded = { url: server.superuserUrl, password }
    const opened = await unlessAborted(signal, embeddedDatabases(server, superuserUrl, options))
    return { ...opened, embedded }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function embeddedDatabases(
  server: EmbeddedServer,
  superuserUrl: string,
  options: OpenOptions,
): Promise<Omit<OpenedServer, 'embedded'>> {
  const { config, createsMissing, secrets } = options
  const seen = await seeEmbedded(superuserUrl, options)
  const login = (age: Standing['secret']) => ({
    name: CONTROL,
    password: secrets.derive('database-role', CONTROL, age),
  })
  const controlUrl = (age: Standing['secret']) => server.url(CONTROL, login(age).password, CONTROL)
  const repairs = createsMissing
    ? await provision(server.superuserUrl, {
        roles: [{ ...login('current'), url: controlUrl('current') }],
        databases: [{ name: CONTROL, owner: CONTROL }],
        keepsPasswords: seen.standing?.secret === 'current',
      })
    : []
  // On its own server there is no other installation, so the names need no prefix.
  const names = { ...builtInNames(CONTROL), anonymous: 'anon', signedIn: 'authenticated' }
  const url = controlUrl(createsMissing ? 'current' : (seen.standing?.secret ?? 'current'))
  const standing = await settleInstallation(url, seen, options)
  const { url: urlOf, superuserUrl: provisionUrl } = server
  const built = await ensureBuiltIn({ ...options, names, standing, url: urlOf, provisionUrl })
  if (createsMissing) await recordCurrentSecret(url, standing, secrets)
  return {
    controlUrl: url,
    pooler: undefined,
    describes: `embedded PostgreSQL ${server.version.split('.')[0]} in ${config.server.data_dir}`,
    ...builtInDatabases(built, names),
    repairs: [...repairs, ...built.repairs],
    advice: undefined,
    separateAudit: () => separateAudit(superuserUrl, names, standing),
    died: server.died,
    stop: (within) => server.stop(within),
  }
}

/** As the superuser: the password of the control role may not be known yet. */
async function seeEmbedded(url: string, options: OpenOptions): Promise<InstallationState> {
  try {
    return await withClient(url, (client) => inspectControl(client, options))
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== UNKNOWN_DATABASE) throw error
    return { database: CONTROL, standing: undefined, isCopy: false }
  }
}

const UNKNOWN_DATABASE = '3D000'
