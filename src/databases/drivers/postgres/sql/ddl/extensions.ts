import type { ExtensionDefinition, RunQuery, SchemaStatements } from '#databases/drivers/management.ts'
import { requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** The gateway has found the name on its list of allowed extensions. */
export function installExtension(extension: ExtensionDefinition): SchemaStatements {
  requireUnreserved(extension.schema, extension.name)
  return {
    statements: [`create extension ${quoteName(extension.name)} with schema ${quoteName(extension.schema)}`],
    check: requireAvailable(extension),
    explain: async (_query, failure) => explainInstall(extension, failure),
  }
}

const requireAvailable =
  ({ name, schema }: ExtensionDefinition) =>
  async (query: RunQuery): Promise<void> => {
    const [found] = await query<Record<'available' | 'in_schema', boolean>>(AVAILABLE_SQL, [name, schema])
    if (found?.available !== true)
      throw fail('extension_unavailable', {
        hint: 'Its files have to be installed on the server first.',
        details: { extension_name: name },
      })
    if (!found.in_schema)
      throw fail('object_not_found', {
        message: `There is no schema ${schema}`.slice(0, 100),
        details: { schema_name: schema },
      })
  }

const AVAILABLE_SQL = `select exists (select from pg_available_extensions where name = $1) as available,
  exists (select from pg_namespace where nspname = $2) as in_schema`

function explainInstall({ name }: ExtensionDefinition, failure: Failure): Failure {
  const { code, hint, cause } = failure
  if (code === 'permission_denied')
    return fail('permission_denied', {
      message: `The database role of this client may not install ${name}`,
      hint: `Let a superuser run CREATE EXTENSION "${name}" in this database, or grant the role CREATE on the database and the schema.`,
      details: { extension_name: name },
      cause,
    })
  // It requires another extension.
  if (code === 'object_not_found')
    return fail('invalid_definition', { cause, ...(hint !== undefined && { hint }) })
  return failure
}

/** One JSON value; no row when it is not installed. */
export function installedSql(name: string): BuiltSql {
  const sql = createSql('')
  sql.text = `select json_build_object('schema', n.nspname, 'version', e.extversion) as extension
    from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = ${bind(sql, name)}`
  return sql
}
