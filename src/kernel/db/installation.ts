import type pg from 'pg'
import { InstallationError, NoInstallation } from '../installation-secrets.ts'
import { type Random, uuidv7 } from '../random.ts'
import type { Secrets } from '../secrets.ts'
import { prepare } from './migrate.ts'

/** Which installation a control database belongs to (running.md, "One installation"). */
export type Standing = {
  readonly id: string
  /** The secret that fits the database's check value: the current one of this process, or its previous one. */
  readonly secret: 'current' | 'previous'
}

/** The database as it is now. `standing` is undefined when it contains nothing of Gatehouse yet. */
export type InstallationState = {
  readonly database: string
  readonly standing: Standing | undefined
  /** The database was recorded under another name; only with `takeOver: 'copy'`. */
  readonly isCopy: boolean
}

/** Why a control database does not fit this process. `migrate` can resolve two of them. */
export type Mismatch = 'unreleased' | 'foreign' | 'copy'

class ForeignInstallation extends InstallationError {
  readonly mismatch: Mismatch
  constructor(mismatch: Mismatch, message: string) {
    super(message)
    this.mismatch = mismatch
  }
}

export type InstallationCheck = {
  readonly secrets: Secrets
  /** For the message when the secret does not fit: `the secret of SERVICE_SECRET does not fit`. */
  readonly mismatch: string
  /** The mismatch that the operator has told `migrate` to resolve. */
  readonly takeOver?: Mismatch | undefined
}

type Row = { readonly id: string; readonly secret_check: string; readonly control_database: string }
type Facts = { readonly database: string; readonly is_used: boolean; readonly is_recorded: boolean }

/** Reads which installation the database belongs to, and changes nothing. Throws when it is another one. */
export async function seeInstallation(
  client: pg.ClientBase,
  asking: InstallationCheck,
): Promise<InstallationState> {
  const { rows } = await client.query<Facts>(
    `select current_database()::text as database, to_regnamespace('service') is not null as is_used,
       to_regclass('service.installation') is not null as is_recorded`,
  )
  const [facts] = rows
  if (facts === undefined) throw new Error('a select of one row answered none')
  const { database } = facts
  if (!facts.is_used) return { database, standing: undefined, isCopy: false }
  const found = facts.is_recorded ? await recorded(client) : undefined
  if (found === undefined) throw unreleased(database)
  const secret = fitting(found, asking.secrets)
  if (secret === undefined && asking.takeOver !== 'foreign') throw foreign(database, asking.mismatch)
  const isCopy = found.control_database !== database
  if (isCopy && asking.takeOver !== 'copy') throw copy(database, found)
  return { database, standing: { id: found.id, secret: secret ?? 'previous' }, isCopy }
}

async function recorded(client: pg.ClientBase): Promise<Row | undefined> {
  const { rows } = await client.query<Row>(
    'select id, secret_check, control_database from service.installation',
  )
  return rows[0]
}

const fitting = ({ id, secret_check }: Row, secrets: Secrets): Standing['secret'] | undefined =>
  (['current', 'previous'] as const).find((age) => secrets.derive('installation', id, age) === secret_check)

/** Records this installation in an empty database. Of several concurrent processes the first one inserts the row, and the others read it. */
export async function establishInstallation(
  client: pg.Client,
  asking: InstallationCheck,
  { random, now }: { readonly random: Random; readonly now: Date },
): Promise<Standing> {
  await client.query('begin')
  try {
    await client.query(`select pg_advisory_xact_lock(hashtextextended('gatehouse installation', 0))`)
    const seen = await seeInstallation(client, asking)
    const standing = seen.standing ?? { id: uuidv7(now, random), secret: 'current' as const }
    if (seen.standing === undefined) {
      await prepare(client)
      await client.query(
        'insert into service.installation (id, secret_check, control_database) values ($1, $2, current_database())',
        [standing.id, asking.secrets.derive('installation', standing.id)],
      )
    }
    await client.query('commit')
    return standing
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

/** From here on only the current secret fits; the passwords of the built-in roles must be derived from it already. */
export async function recordSecret(client: pg.ClientBase, id: string, secrets: Secrets): Promise<void> {
  await client.query('update service.installation set secret_check = $1', [
    secrets.derive('installation', id),
  ])
}

/** A copy becomes an installation of its own, with databases and roles of its own. */
export async function recordCopy(
  client: pg.ClientBase,
  secrets: Secrets,
  { random, now }: { readonly random: Random; readonly now: Date },
): Promise<Standing> {
  const id = uuidv7(now, random)
  await client.query('begin')
  await client.query(
    'update service.installation set id = $1, secret_check = $2, control_database = current_database()',
    [id, secrets.derive('installation', id)],
  )
  await retireJwtKeys(client)
  await client.query('commit')
  return { id, secret: 'current' }
}

/** Two installations must not sign with one key. A database of an older version, which has none, is migrated later. */
async function retireJwtKeys(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regprocedure('service.retire_jwt_keys()') is not null as exists`,
  )
  if (rows[0]?.exists === true) await client.query('select service.retire_jwt_keys()')
}

const unreleased = (database: string) =>
  new ForeignInstallation(
    'unreleased',
    `The control database ${database} has a schema "service" from before the first release of Gatehouse, which no version can use: ` +
      'name an empty database in database.url, or on the embedded server a new folder in server.data_dir.',
  )

const foreign = (database: string, mismatch: string) =>
  new ForeignInstallation(
    'foreign',
    `The control database ${database} belongs to an installation with another secret: ${mismatch}. ` +
      "Run this in that installation's folder, name its data folder in SERVICE_SERVER__DATA_DIR, or set SERVICE_SECRET to its secret.",
  )

const copy = (database: string, found: Row) =>
  new ForeignInstallation(
    'copy',
    `The control database ${database} is a copy of ${found.control_database}: name that one in database.url, ` +
      `or run gatehouse migrate --as-copy to make ${database} an installation of its own.`,
  )

/** For commands that create nothing. */
export const notEstablished = (database: string) =>
  new NoInstallation(
    `There is no installation in the control database ${database} yet: run gatehouse serve, or gatehouse migrate, first.`,
  )
