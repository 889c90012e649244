/**
 * Names of the system, said so that none of a client's own is found instead of them (docs/decisions/0026-names-with-their-schema.md).
 * A statement of our own has them in full, or it runs with a search path of the system alone (`persona.ts`).
 */

/** Operators between spaces become those of the system. For texts of ours, which have no such sign in a literal. */
export const withSystemOperators = (text: string): string =>
  text.replace(/ (=|<>|>=|<=|>|<|!~|\|\|) /g, ' operator(pg_catalog.$1) ')

/** The type in a row of pg_type as a cast to it is written under every search path. */
export const qualifiedType = (row: string): string =>
  `(select pg_catalog.quote_ident(n.nspname) operator(pg_catalog.||) '.' operator(pg_catalog.||) pg_catalog.quote_ident(${row}.typname)
    from pg_catalog.pg_namespace n where n.oid operator(pg_catalog.=) ${row}.typnamespace)`
