import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, readdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { fail } from '#gateway/errors.ts'
import { ENVIRONMENT } from '#kernel/db/embedded/system-user.ts'

export type ProgramName = 'pg_dump' | 'pg_restore'
export type Program = { readonly file: string; readonly major: number }

type Search = {
  /** `backups.programs`: the only folder to look in. */
  readonly folder: string | undefined
  /** PATH of the service. */
  readonly path: string | undefined
}

/**
 * The program of the server's major version, or the next newer one that is installed: an older pg_dump cannot read a newer server, and a much
 * newer pg_restore sets parameters that an older server does not know.
 */
export async function findProgram(name: ProgramName, server: number, search: Search): Promise<Program> {
  const found = await Promise.all(
    (await foldersOf(search)).map((folder) => versionOf(path.join(folder, name))),
  )
  const programs = found.filter((program) => program !== undefined)
  const fitting = programs
    .filter(({ major }) => major >= server)
    .sort((one, other) => one.major - other.major)
  const [program] = fitting
  if (program !== undefined) return program
  const newest = Math.max(0, ...programs.map(({ major }) => major))
  throw fail('backup_program_missing', {
    message:
      newest === 0
        ? `The program ${name} is not installed on the machine of the service`
        : `The program ${name} ${newest} on the machine of the service is older than the server, which is PostgreSQL ${server}`,
    hint:
      `Install the client programs of PostgreSQL ${server} or newer (Debian and Ubuntu: apt install postgresql-client-${server}; ` +
      `Fedora: dnf install postgresql${server}; macOS: brew install libpq), or name their folder in backups.programs`,
    details: { program: name, server_version: server },
  })
}

async function foldersOf({ folder, path: listed = '' }: Search): Promise<readonly string[]> {
  if (folder !== undefined) return [folder]
  const usual = await Promise.all(USUAL.map(([parent, pattern, rest]) => below(parent, pattern, rest)))
  return [...new Set([...usual.flat(), ...listed.split(path.delimiter)])].filter((one) =>
    path.isAbsolute(one),
  )
}

/** Where packages of PostgreSQL put their programs: parent, name of the version's folder, and the folder below it. */
const USUAL: readonly (readonly [string, RegExp, string])[] = [
  ['/usr/lib/postgresql', /^\d+$/, 'bin'],
  ['/usr', /^pgsql-\d+$/, 'bin'],
  ['/usr/local', /^pgsql$/, 'bin'],
  ['/usr', /^bin$/, ''],
  ['/usr/local', /^bin$/, ''],
  ['/opt/homebrew/opt', /^(postgresql(@\d{1,3})?|libpq)$/, 'bin'],
  ['/usr/local/opt', /^(postgresql(@\d{1,3})?|libpq)$/, 'bin'],
  ['/Library/PostgreSQL', /^\d+$/, 'bin'],
]

async function below(parent: string, pattern: RegExp, rest: string): Promise<readonly string[]> {
  const names = await readdir(parent).catch(() => [])
  return names.filter((name) => pattern.test(name)).map((name) => path.join(parent, name, rest))
}

/** Undefined when it is not there or does not run. To start a program stops this process for a moment, so only one that is there is started. */
async function versionOf(file: string): Promise<Program | undefined> {
  if (!(await isExecutable(file))) return undefined
  const running = promisify(execFile)(file, ['--version'], {
    env: ENVIRONMENT,
    timeout: 5_000,
    maxBuffer: 4_096,
  })
  const said = await running.then(
    ({ stdout }) => stdout,
    () => '',
  )
  const [, major] = /\(PostgreSQL\) (\d{1,3})/.exec(said) ?? []
  return major === undefined ? undefined : { file, major: Number(major) }
}

const isExecutable = (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
