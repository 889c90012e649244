import type { RunQuery, SchemaStatements } from '#databases/drivers/management.ts'
import {
  createTriggers,
  dropTrigger,
  FEED_NAME,
  type KeyColumn,
  noteFunction,
} from '#databases/drivers/postgres/changes/note-function.ts'
import {
  isLive,
  isSame,
  isWatched,
  NOTED_TABLES_SQL,
  type NotedTable,
  nameOf,
} from '#databases/drivers/postgres/changes/noted-tables.ts'
import {
  CLOSE_FEED,
  CREATE_STORAGE,
  DROP_UNUSED,
  FEED_TABLES,
  LOCK_FEED,
} from '#databases/drivers/postgres/changes/storage.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { TableName } from '#databases/request/request.ts'

/** Triggers that a table is to have: for its key, for a table that is only watched (an empty key), or none. */
export type Wanted = { readonly noted: NotedTable; readonly key: readonly KeyColumn[] | undefined }

/** Statements after which the tables have the triggers that they are to have. */
export function triggerStatements(wanted: readonly Wanted[]): SchemaStatements {
  const changed = wanted.filter((one) => !has(one))
  if (changed.length === 0) return { statements: [] }
  const functions = new Map(
    changed
      .flatMap(({ key }) => (key === undefined ? [] : [noteFunction(key)]))
      .map((one) => [one.name, one]),
  )
  return {
    statements: [
      ...(functions.size === 0
        ? [LOCK_FEED]
        : [...CREATE_STORAGE, ...functions.values().map(({ create }) => create), CLOSE_FEED]),
      ...changed.flatMap(ofTable),
      DROP_UNUSED,
    ],
    check: requireOwnFeed,
    async verify(query) {
      // They may have been made meanwhile.
      await requireOwnFeed(query)
      // Until the lock of CREATE TRIGGER, the key could change.
      const names = changed.map(({ noted }) => nameOf(noted))
      const [row] = await query<{ tables: readonly NotedTable[] }>(NOTED_TABLES_SQL, [JSON.stringify(names)])
      const now = row?.tables ?? []
      const isDone = ({ noted, key }: Wanted): boolean => {
        const found = now.find((one) => isSame(one, noted))
        return found !== undefined && has({ noted: found, key: key && (key.length === 0 ? [] : found.key) })
      }
      if (!changed.every(isDone)) throw fail('write_conflict')
    },
  }
}

/**
 * Another client of this database may have its objects of the feed. Their owner decides what runs when they are written, as the owner of the
 * functions that write: so it has to be the same role, and to be a member of it, or a superuser, is not enough.
 */
export async function requireOwnFeed(query: RunQuery): Promise<void> {
  const [row] = await query<{ owner: string }>(OTHER_OWNER_SQL, [])
  if (row !== undefined)
    throw fail('permission_denied', {
      message: `The tables of live rows in this database belong to the role ${row.owner}`,
      hint: 'All clients that make tables of one database live need one role.',
    })
}

const OTHER_OWNER_SQL = `select pg_get_userbyid(owned.owner) as owner from (
  select relowner as owner from pg_class where relnamespace = to_regnamespace('public') and relname = any (${FEED_TABLES})
  union all
  select proowner from pg_proc where pronamespace = to_regnamespace('public') and proname ~ '^${FEED_NAME}_[0-9a-f]{16}$'
) as owned where owned.owner <> (select oid from pg_roles where rolname = current_user) limit 1`

function has({ noted, key }: Wanted): boolean {
  if (key === undefined) return noted.functions.length === 0
  return key.length === 0 ? isWatched(noted) : isLive(noted)
}

function ofTable({ noted, key }: Wanted): readonly string[] {
  const table = quotedName(nameOf(noted))
  // DROP TRIGGER takes a stronger lock than CREATE TRIGGER, also where there is nothing to drop.
  const drops = noted.triggers.map((trigger) => dropTrigger(table, quoteName(trigger)))
  return key === undefined ? drops : [...drops, ...createTriggers(table, noteFunction(key))]
}

const quotedName = ({ schema, table }: TableName): string => `${quoteName(schema)}.${quoteName(table)}`
