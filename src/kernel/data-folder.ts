import { accessSync, constants, existsSync, renameSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Config } from './config/config.ts'
import { findInterrupted, hasDatabase } from './db/embedded/replacement.ts'
import { generatedOnce, InstallationError } from './installation-secrets.ts'
import type { Random } from './random.ts'

/** The embedded server's own folder. */
export const embeddedFolder = ({ server }: Config): string => path.join(server.data_dir, 'postgres')

/** The password of the embedded server's superuser. */
export const passwordFile = ({ server }: Config): string => path.join(server.data_dir, 'postgres-password')

/** The key of the built-in client `default`, spelled like the setting, because messages name it. */
export const defaultKeyFile = ({ server }: Config): string => `${server.data_dir}/default-key`

type SuperuserPassword = {
  readonly password: string
  /** There is a database now that it opens. */
  keep(): void
}

/**
 * A new password gets the name of its file when there is a database that it opens, so that the file without a database shows a
 * loss, and not a first start that was interrupted.
 */
export function openSuperuserPassword(config: Config, random: Random): SuperuserPassword {
  const file = passwordFile(config)
  if (existsSync(file)) return { password: generatedOnce(file, random), keep: () => {} }
  const fresh = `${file}.new`
  if (hasDatabase(embeddedFolder(config)) && !existsSync(fresh))
    throw new InstallationError(
      `${path.resolve(file)} is missing, the password of the database in ${path.resolve(embeddedFolder(config))}: copy it back from ` +
        'where the folder was copied or restored from.',
    )
  const password = generatedOnce(fresh, random)
  // Concurrent starts have the same one.
  return { password, keep: () => existsSync(fresh) && renameSync(fresh, file) }
}

/** Files that the service writes when it has a database. */
const WITH_DATABASE = ['postgres-password', 'default-key', 'postgres/server.log', 'postgres/data'] as const
/** Further files of an installation, for the message. */
const BESIDE = ['secret', 'admin-key'] as const

/** Why a start would make a new database in the place of a lost one; undefined when it would not. */
export function lostDatabase(config: Config): string | undefined {
  if (config.database.url !== undefined) return undefined
  const folder = embeddedFolder(config)
  const { data_dir } = config.server
  const has = (name: string) => statSync(path.join(data_dir, name), { throwIfNoEntry: false }) !== undefined
  try {
    if (has('postgres/data/PG_VERSION') || findInterrupted(folder)) return undefined
    const found = WITH_DATABASE.filter(has)
    if (found.length === 0) return undefined
    return (
      `The database of this installation is missing: there is no ${path.resolve(folder, 'data/PG_VERSION')}, and ${path.resolve(data_dir)} has ` +
      `${[...found, ...BESIDE.filter(has)].join(', ')}. Restore a backup (gatehouse restore FILE), or, if the database is on a server, name it in ` +
      'DATABASE_URL. For a new, empty installation move these files away.'
    )
  } catch (error) {
    const closed = closedFile(error)
    if (closed === undefined) throw error
    return closed
  }
}

/**
 * Why an empty control database on a server is not the one of this folder; undefined when it may be. Read it before the database: another
 * process may write the files as soon as it has established the installation.
 */
export function lostControl({ database, server: { data_dir } }: Config): string | undefined {
  if (database.url === undefined) return undefined
  const has = (name: string) => existsSync(path.join(data_dir, name))
  const found = WITH_DATABASE.filter(has)
  if (found.length === 0) return undefined
  return (
    `has no installation, and ${path.resolve(data_dir)} has ${[...found, ...BESIDE.filter(has)].join(', ')}, which an installation with another ` +
    'database has written. Restore the control database with pg_restore, or name the right one in DATABASE_URL (without it, the embedded server ' +
    'in that folder is used). For a new, empty installation move these files away.'
  )
}

/** The operator's message for a file that this process may not use; undefined for any other error. */
export function closedFile(error: unknown): string | undefined {
  const { code, path: file } = Object(error) as NodeJS.ErrnoException // whatever was thrown
  if (file === undefined || (code !== 'EACCES' && code !== 'EPERM')) return undefined
  const place = closedAt(path.resolve(file))
  const user = process.getuid?.()
  const owner = statSync(place).uid
  return (
    `${place} belongs to user id ${owner}, and user id ${user} may not use it (${code}): ` +
    (owner === user
      ? 'open it to its owner (chmod -R u+rwX).'
      : `run this as user id ${owner}, or give the whole folder to user id ${user} (chown -R).`)
  )
}

/** The file, or the closed folder above it. */
function closedAt(file: string): string {
  try {
    statSync(file)
    return file
  } catch {
    const above = path.dirname(file)
    return above === file ? file : closedAt(above)
  }
}

/** For commands that make no database. */
export const noDatabase = (config: Config): InstallationError =>
  new InstallationError(
    findInterrupted(embeddedFolder(config))?.says ??
      lostDatabase(config) ??
      `There is no database in ${path.resolve(config.server.data_dir)}: run this in the folder of the installation, name its data folder with ` +
        '--data-dir or SERVICE_SERVER__DATA_DIR, or its server in DATABASE_URL. A new installation begins with gatehouse serve.',
  )

/** Why the service cannot write to the folder or create it; undefined when it can. Creates nothing. */
export function folderProblem(dir: string): string | undefined {
  try {
    expectWritable(path.resolve(dir))
    return undefined
  } catch (error) {
    return unwritable(dir, error)
  }
}

/** The operator's message for a file error in the folder. */
export function unwritable(dir: string, error: unknown): string {
  const { code = String(error) } = error as NodeJS.ErrnoException // thrown by node:fs
  const user = process.getuid === undefined ? 'the user of the service' : `user id ${process.getuid()}`
  return (
    `server.data_dir: ${user} cannot write to ${path.resolve(dir)} (${code}). Give the folder to that user, or name another with ` +
    'SERVICE_SERVER__DATA_DIR or --data-dir.'
  )
}

/** Checks the folder, or the nearest existing folder above it. */
function expectWritable(dir: string): void {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found?.isDirectory() === false) throw Object.assign(new Error(`${dir} is a file`), { code: 'ENOTDIR' })
  if (found === undefined) expectWritable(path.dirname(dir))
  else accessSync(dir, constants.W_OK | constants.X_OK)
}
