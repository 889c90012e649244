import { accessSync, constants, statSync } from 'node:fs'
import path from 'node:path'
import type { Config } from './config/config.ts'
import { findInterrupted } from './db/embedded/replacement.ts'
import { InstallationError } from './installation-secrets.ts'

/** The embedded server's own folder. */
export const embeddedFolder = ({ server }: Config): string => path.join(server.data_dir, 'postgres')

/** For commands that make no database. */
export const noDatabase = (config: Config): InstallationError =>
  new InstallationError(
    findInterrupted(embeddedFolder(config))?.says ??
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
