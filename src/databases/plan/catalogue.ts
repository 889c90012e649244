/** The structure of a database, as far as plans need it. The driver reads it, caches it, and drops it after DDL. */
export type Catalogue = {
  readonly tables: readonly Table[]
  find(schema: string, table: string): Table | undefined
  /** Foreign keys that reference the table. */
  referencing(table: Table): readonly Reference[]
}

export type Table = {
  readonly schema: string
  readonly name: string
  readonly kind: 'table' | 'view' | 'materialized view' | 'foreign table' | 'partitioned table'
  readonly estimatedRows: number
  readonly columns: ReadonlyMap<string, Column>
  readonly primaryKey: readonly string[]
  readonly constraints: readonly Constraint[]
  /**
   * Writes to other tables change none of its rows, and writes to it change no rows of other tables: no view, trigger, rule, partition or
   * cascade. Undefined: unknown.
   */
  readonly standsAlone?: boolean
  /** Reading a row reads only the stored row: no view, no child tables, no policy. Undefined: unknown. */
  readonly isPlain?: boolean
  /** Other tables inherit from it, so its keys are not unique among the rows that it shows. Undefined: none does. */
  readonly hasChildren?: boolean
  /**
   * Reading it runs user-defined functions (a view, a policy, a domain inside a value), which may change the session. Undefined: unknown.
   */
  readonly readRunsCode?: boolean
  /** Writing it runs user-defined functions: a trigger, a rule, a default, a check, an index, a cascade. */
  readonly writeRunsCode?: boolean
  /** Row-level security is on, so that a caller may not see all of its rows. Undefined: unknown. */
  readonly hasPolicies?: boolean
  /**
   * The same, and its policies look at the row and at settings alone: reading a row reads no other table, no child tables, and runs no
   * user-defined function of a policy. Undefined: unknown.
   */
  readonly hasRowPolicies?: boolean
}

export type Column = {
  readonly name: string
  /** The type as the database writes it, with length and precision: `character varying(20)`. */
  readonly type: string
  /** The type without length and precision, quoted for use in a cast: `character varying`, `public."Mood"`. */
  readonly cast: string
  /** pg_type.typcategory of the base type: A array, B boolean, C composite, N number, R range, S string, U other … */
  readonly category: string
  /** Name of the base type, below any domain: `jsonb`, `int8`, `_text`. */
  readonly base: string
  readonly nullable: boolean
  /** The default as the database writes it, also of an identity column; undefined when there is none. */
  readonly fallback: string | undefined
  readonly writable: boolean
  readonly identity: 'always' | 'by default' | undefined
  /** Between the values of an array of the base type, where it is no comma: `;` for box, `:` for geometry. */
  readonly separator?: string | undefined
}

export type Constraint = {
  readonly name: string
  readonly kind: 'primary key' | 'unique' | 'foreign key' | 'check' | 'exclusion'
  readonly columns: readonly string[]
  readonly references:
    | {
        readonly schema: string
        readonly table: string
        readonly columns: readonly string[]
        /** Rows go with the row that they refer to. Undefined: unknown. */
        readonly cascades?: boolean
        /** False for a key that rows were never checked by. Undefined: unknown. */
        readonly isValid?: boolean
      }
    | undefined
  /** Undefined where the driver reads it on request (`constraintDefinitions`). */
  readonly definition: string | undefined
}

export type IndexName = { readonly schema: string; readonly name: string }

export type ConstraintDefinition = readonly [
  schema: string,
  table: string,
  constraint: string,
  definition: string,
]

type Reference = { readonly from: Table; readonly constraint: Constraint }

/** Adds the indexes that find tables and references. */
export function catalogueOf(tables: readonly Table[]): Catalogue {
  const key = (schema: string, name: string) => JSON.stringify([schema, name])
  const byName = new Map(tables.map((table) => [key(table.schema, table.name), table]))
  const references = tables.flatMap((from) =>
    from.constraints.flatMap((constraint): (Reference & { to: string })[] =>
      constraint.references
        ? [{ from, constraint, to: key(constraint.references.schema, constraint.references.table) }]
        : [],
    ),
  )
  const byTarget = Map.groupBy(references, ({ to }) => to)
  return {
    tables,
    find: (schema, name) => byName.get(key(schema, name)),
    referencing: (table) => byTarget.get(key(table.schema, table.name)) ?? [],
  }
}

export type Index = {
  readonly schema: string
  readonly table: string
  readonly name: string
  readonly method: string
  readonly unique: boolean
  readonly primary: boolean
  /** False while the index is built concurrently, or after that has failed. */
  readonly valid: boolean
  /** Columns, and expressions as the database writes them. */
  readonly columns: readonly string[]
  readonly definition: string
}
