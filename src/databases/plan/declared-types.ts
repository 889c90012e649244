import type { CallableFunction } from './functions.ts'

/** Types and functions that users of the database have declared, and what views take: what generated TypeScript needs beside the catalogue. */
export type DeclaredTypes = {
  /** By their name in a cast (`Column.cast`). */
  readonly types: ReadonlyMap<string, DeclaredType>
  readonly functions: readonly DeclaredFunction[]
  readonly updatableViews: readonly UpdatableView[]
}

export type DeclaredType = { readonly schema: string; readonly name: string } & (
  | { readonly kind: 'enum'; readonly labels: readonly string[] }
  | { readonly kind: 'composite'; readonly fields: readonly CompositeField[] }
  /** The rows of a table or view. */
  | { readonly kind: 'row' }
  | { readonly kind: 'domain' | 'array'; readonly of: TypeUse }
)

/** A type where it is used: its name in a cast, and pg_type.typname. */
export type TypeUse = { readonly cast: string; readonly base: string }

export type CompositeField = TypeUse & { readonly name: string }

export type DeclaredFunction = CallableFunction & { readonly returns: TypeUse; readonly returnsSet: boolean }

/** A view that takes inserts and updates of these columns. */
export type UpdatableView = {
  readonly schema: string
  readonly name: string
  readonly columns: readonly string[]
}
