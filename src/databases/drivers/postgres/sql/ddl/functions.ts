import type { FunctionChange, FunctionName, RunQuery } from '#databases/drivers/management.ts'
import { OF_EXPRESSIONS, refusalAs } from '#databases/drivers/postgres/sql/ddl/explanations.ts'
import { readFunction, refuse } from '#databases/drivers/postgres/sql/ddl/function-text.ts'
import { newName, requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { typeNamed } from '#databases/drivers/postgres/sql/ddl/type-names.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'

/**
 * Creates or replaces a function: the text itself is the statement, after it was read. It is sent as one statement of the extended
 * protocol, and the function that it made is judged again in the same transaction.
 */
export async function upsertFunction(
  ddl: string,
  { bound }: { readonly bound: boolean },
): Promise<FunctionChange> {
  const { schema, name, argTypes } = await readFunction(ddl, { bound })
  newName(name, 'ddl')
  requireUnreserved(schema, name)
  const signature = signatureText(schema, name, argTypes)
  const definition: Definition = { signature: plain(signature), before: null, after: null }
  return {
    schema,
    name,
    definition,
    statements: [ddl],
    async check(query) {
      await lockFunction(query, schema, name)
      const found = await findFunction(query, signature)
      if (found !== undefined && found.extension !== null) throw ofExtension(found.extension)
      definition.before = found?.definition ?? null
    },
    async verify(query) {
      const made = await query<MadeFunction>(MADE_SQL, [])
      const [only, ...others] = made
      if (only === undefined || others.length > 0) throw refuse('ddl has not made one function')
      requireSafe(only, { schema, bound })
      definition.signature = only.signature
      definition.after = only.definition
    },
    explain: explainFunction,
  }
}

/** Drops a function that nothing depends on. */
export async function dropFunction({ schema, name, argTypes }: FunctionName): Promise<FunctionChange> {
  requireUnreserved(schema, name)
  const types: string[] = []
  for (const type of argTypes) types.push(await typeNamed(type, 'arg_types'))
  const signature = signatureText(schema, name, types)
  const definition: Definition = { signature: plain(signature), before: null, after: null }
  return {
    schema,
    name,
    definition,
    statements: [`drop function ${signature} restrict`],
    async check(query) {
      await lockFunction(query, schema, name)
      const found = await findFunction(query, signature)
      if (found === undefined)
        throw fail('function_not_found', { details: { signature: definition.signature } })
      if (found.extension !== null) throw ofExtension(found.extension)
      definition.signature = found.signature
      definition.before = found.definition
    },
  }
}

type Definition = FunctionChange['definition']

const signatureText = (schema: string, name: string, types: readonly string[]): string =>
  `${quoteName(schema)}.${quoteName(name)}(${types.join(', ')})`

const plain = (signature: string): string => signature.replaceAll('"', '')

/** Two changes of one function at once fail inside PostgreSQL ("tuple concurrently updated"), so they wait for each other. */
const lockFunction = (query: RunQuery, schema: string, name: string) =>
  query(`select pg_advisory_xact_lock(hashtextextended($1, 0))`, [`gatehouse function ${schema}.${name}`])

type FoundFunction = {
  readonly signature: string
  readonly definition: string
  readonly extension: string | null
}

async function findFunction(query: RunQuery, signature: string): Promise<FoundFunction | undefined> {
  const [named] = await inClientsPath(query, () =>
    query<{ oid: string | null }>(
      'select pg_catalog.to_regprocedure($1)::pg_catalog.oid::pg_catalog.text as oid',
      [signature],
    ),
  )
  const [found] = await query<FoundFunction>(FOUND_SQL, [named?.oid ?? null])
  return found
}

/** Types of extensions are found in the client's schemas. */
async function inClientsPath<T>(query: RunQuery, work: () => Promise<T>): Promise<T> {
  await query(
    `select set_config('search_path', reset_val, true) from pg_settings where name = 'search_path'`,
    [],
  )
  const result = await work()
  await query(`select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`, [])
  return result
}

const SIGNATURE = `concat(n.nspname, '.', p.proname, '(', pg_get_function_identity_arguments(p.oid), ')')`

const EXTENSION = `(select e.extname from pg_depend d join pg_extension e on e.oid = d.refobjid
  where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e' limit 1)`

const FOUND_SQL = `select ${SIGNATURE} as signature, pg_get_functiondef(p.oid) as definition, ${EXTENSION} as extension
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = $1::text::oid and p.prokind = 'f'`

type MadeFunction = FoundFunction & {
  readonly schema: string
  readonly kind: string
  readonly language: string
  readonly isTrusted: boolean
  readonly isDefiner: boolean
  readonly hasSettings: boolean
}

/** The functions whose rows this transaction has written. */
const MADE_SQL = `select ${SIGNATURE} as signature, n.nspname as schema, p.prokind as kind, l.lanname as language, l.lanpltrusted as "isTrusted",
    p.prosecdef as "isDefiner", p.proconfig is not null as "hasSettings",
    case when p.prokind = 'f' then pg_get_functiondef(p.oid) else '' end as definition, ${EXTENSION} as extension
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
  where p.xmin = pg_current_xact_id()::xid`

/** The server's function must have the properties that the parser has found. */
function requireSafe(
  made: MadeFunction,
  { schema, bound }: { readonly schema: string; readonly bound: boolean },
): void {
  if (made.extension !== null) throw ofExtension(made.extension)
  if (made.kind !== 'f' || !made.isTrusted) throw refuse(`Language ${made.language} is not allowed`)
  if (bound && (made.isDefiner || made.hasSettings || !['sql', 'plpgsql'].includes(made.language)))
    throw refuse(
      'On a client with row-level security a function is sql or plpgsql, without SECURITY DEFINER and SET',
    )
  if (made.schema !== schema)
    throw refuse(
      `The search path of the client leads to schema ${made.schema}: name the function with its schema`,
    )
}

const ofExtension = (extension: string) =>
  fail('object_in_use', {
    message: `The function belongs to extension ${extension}`,
    details: { extension },
  })

const explainFunction = refusalAs('invalid_function', [
  ...OF_EXPRESSIONS,
  'object_not_found',
  'invalid_identifier',
])
