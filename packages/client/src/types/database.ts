/** A JSON value of a column. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

/** A database whose types were not given: any name is one of a table, and its values are JSON. */
export type AnyDatabase = {
  public: {
    Tables: { [table: string]: AnyTable }
    Views: { [view: string]: AnyTable }
    Functions: { [name: string]: { Args: { [name: string]: unknown }; Returns: Json } }
  }
}
type AnyTable = {
  Row: AnyRow
  Insert: { [column: string]: unknown }
  Update: { [column: string]: unknown }
  Relationships: []
}
export type AnyRow = { [column: string]: Json }

/** `__InternalSupabase` and the like are no schemas. */
export type SchemaName<DB> = 'public' extends keyof DB ? 'public' : SchemaNames<DB>
export type SchemaNames<DB> = Exclude<keyof DB & string, `__${string}`>

type Tables<DB, S> = S extends keyof DB ? (DB[S] extends { Tables: infer T } ? T : never) : never
type Views<DB, S> = S extends keyof DB ? (DB[S] extends { Views: infer V } ? V : never) : never
type Functions<DB, S> = S extends keyof DB ? (DB[S] extends { Functions: infer F } ? F : never) : never

export type TableNames<DB, S> = (keyof Tables<DB, S> | keyof Views<DB, S>) & string
export type FunctionNames<DB, S> = keyof Functions<DB, S> & string
export type FunctionOf<DB, S, F> = F extends keyof Functions<DB, S> ? Functions<DB, S>[F] : never

/** How the types of a database have its numbers: 'exact', or something else. */
export type NumbersOf<DB, S> = S extends keyof DB
  ? DB[S] extends { Numbers: infer N }
    ? N
    : unknown
  : unknown

/** A table or view. */
export type Source<DB, S, N> = N extends keyof Tables<DB, S>
  ? Tables<DB, S>[N]
  : N extends keyof Views<DB, S>
    ? Views<DB, S>[N]
    : never

export type RowOf<DB, S, N> = Source<DB, S, N> extends { Row: infer R } ? R : never
export type InsertOf<DB, S, N> = Source<DB, S, N> extends { Insert: infer I } ? I : never
export type UpdateOf<DB, S, N> = Source<DB, S, N> extends { Update: infer U } ? U : never

/** The foreign keys of a table, as a union. */
export type ForeignKeys<DB, S, N> =
  Source<DB, S, N> extends { Relationships: readonly (infer R)[] } ? R : never
