/**
 * Qualified names of the system, so that objects of the client's database cannot replace them
 * (docs/decisions/0026-names-with-their-schema.md). Statements of the gateway either use them or run with the search path pg_catalog
 * (`persona.ts`).
 */

/** Qualifies operators between spaces. Only for SQL of the gateway, which has no such characters in literals. */
export const withSystemOperators = (text: string): string =>
  text.replace(/ (=|<>|>=|<=|>|<|!~|\|\|) /g, ' operator(pg_catalog.$1) ')

/** SQL for the qualified name of the type in a row of pg_type. */
export const qualifiedType = (row: string): string =>
  `(select pg_catalog.quote_ident(n.nspname) operator(pg_catalog.||) '.' operator(pg_catalog.||) pg_catalog.quote_ident(${row}.typname)
    from pg_catalog.pg_namespace n where n.oid operator(pg_catalog.=) ${row}.typnamespace)`
