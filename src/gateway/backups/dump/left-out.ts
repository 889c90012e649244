import { text } from 'node:stream/consumers'
import type pg from 'pg'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { libpqEnvironment } from './libpq-environment.ts'
import type { Program } from './programs.ts'
import { runProgram, send } from './run-program.ts'

/** The contents of a dump for `pg_restore --use-list`, and the entries of others that are not in the list. */
type Selection = { readonly list: string; readonly leftOut: readonly string[] }

type DumpReader = {
  /** pg_restore. */
  readonly program: Program
  readonly url: string
  readonly dump: AsyncIterable<Buffer>
  readonly signal: AbortSignal
}

/**
 * Event triggers and most extensions are made by superusers. The role of a client can neither drop nor create them, so they stay as they are
 * in its database, with the functions that event triggers call. A schema or a function of live rows that is there stays too, since it cannot be
 * dropped while something needs it that the dump does not contain. Undefined if the dump has none of these.
 */
export async function selectionOf(reading: DumpReader): Promise<Selection | undefined> {
  const { isForeign, isThere } = await onConnection({ url: reading.url, name: 'backup' }, entriesThatStay)
  const entries = (await contentsOf(reading)).split('\n')
  const list = entries.filter((entry) => !isForeign(entry) && !isThere(entry))
  if (list.length === entries.length) return undefined
  return {
    list: list.join('\n'),
    leftOut: entries.filter(isForeign).map((entry) => entry.replace(NUMBERS, '')),
  }
}

async function contentsOf({ program, url, dump, signal }: DumpReader): Promise<string> {
  const abandoned = new AbortController()
  const environment = libpqEnvironment(url, program.major)
  const listing = runProgram(program, ['--list'], environment, AbortSignal.any([signal, abandoned.signal]))
  const printed = text(listing.stdout)
  try {
    for await (const bytes of dump) {
      // The contents are at the beginning of a dump, and the program reads no further.
      if (listing.stdin.destroyed) break
      await send(listing.stdin, bytes)
    }
    listing.stdin.end()
    await listing.ended
    return await printed
  } finally {
    // Without effect on a program that has ended.
    abandoned.abort(new Error('the contents are not needed'))
    await listing.ended.catch(() => {})
  }
}

/** In `3302; 3466 16444 EVENT TRIGGER - watch postgres`, before kind, schema, name and owner. */
const NUMBERS = /^\d{1,10}; \d{1,10} \d{1,10} /

type Judge = (entry: string) => boolean

async function entriesThatStay(
  client: pg.Client,
): Promise<{ readonly isForeign: Judge; readonly isThere: Judge }> {
  const namesOf = async (query: string) => {
    const { rows } = await client.query<{ name: string }>(query)
    return rows.map(({ name }) => name)
  }
  const foreign = await namesOf(FOREIGN)
  const schemas = new Set(await namesOf('select nspname as name from pg_namespace'))
  const functions = await namesOf(FEED_FUNCTIONS)
  return {
    isForeign(entry) {
      const rest = entry.replace(NUMBERS, '')
      if (rest === entry) return false
      return (
        /^(?:(?:COMMENT|SECURITY LABEL) - )?EVENT TRIGGER /.test(rest) ||
        foreign.some((name) => rest.startsWith(`${name} `))
      )
    },
    isThere(entry) {
      const rest = entry.replace(NUMBERS, '')
      // The last word is the owner. A schema whose name or owner this does not find is dropped and made again.
      return (
        schemas.has(/^SCHEMA - (.*) \S+$/.exec(rest)?.[1] ?? '') ||
        functions.some(
          (name) =>
            rest.startsWith(`FUNCTION public ${name}() `) ||
            rest.startsWith(`ACL public FUNCTION ${name}() `),
        )
      )
    },
  }
}

/**
 * Functions of live rows, which could not be dropped where a table has become live since the dump. The name of one is a digest of its text.
 */
const FEED_FUNCTIONS = `
  select proname as name from pg_proc where pronamespace = to_regnamespace('public') and proname ~ '^service_changes_[0-9a-f]{16}$'`

/** Beginnings of entries of objects that belong to others: of each the definition, the comment and the rights. */
const FOREIGN = `
  select unnest(array['EXTENSION - ' || extname, 'COMMENT - EXTENSION ' || extname]) as name
    from pg_extension where not pg_has_role(extowner, 'usage')
  union all
  select unnest(array[format('FUNCTION %s %s()', nspname, proname), format('COMMENT %s FUNCTION %s()', nspname, proname),
                      format('ACL %s FUNCTION %s()', nspname, proname)])
    from pg_event_trigger e join pg_proc p on p.oid = e.evtfoid join pg_namespace n on n.oid = p.pronamespace
   where not pg_has_role(e.evtowner, 'usage')`
