import type { Numbers } from '../value-types.ts'

/** As Supabase writes a type without members. */
export const NONE = '{ [_ in never]: never }'

export const jsonType = (numbers: Numbers): string =>
  `export type Json = string | number | ${numbers === 'exact' ? 'bigint | ' : ''}boolean | null | { [key: string]: Json | undefined } | Json[]
`

/** Names for parts of `Database`, used as with Supabase's generator: `Tables<"books">`, `Tables<{ schema: "shop" }, "books">`. */
export const HELPERS = `
type DefaultSchema = Database["public"]
type InSchema = { schema: keyof Database }
type TablesAndViews<Schema extends keyof Database> = Database[Schema]["Tables"] & Database[Schema]["Views"]

/** The row of a table or view. */
export type Tables<
  At extends keyof TablesAndViews<"public"> | InSchema,
  Name extends At extends InSchema ? keyof TablesAndViews<At["schema"]> : never = never,
> = At extends InSchema
  ? TablesAndViews<At["schema"]>[Name] extends { Row: infer Row } ? Row : never
  : At extends keyof TablesAndViews<"public">
    ? TablesAndViews<"public">[At] extends { Row: infer Row } ? Row : never
    : never
${of('Tables', 'TablesInsert', 'What an insert into a table takes.', 'Insert')}${of('Tables', 'TablesUpdate', 'What an update of a table takes.', 'Update')}${of('Enums', 'Enums', 'The labels of an enum.')}${of('CompositeTypes', 'CompositeTypes', 'The fields of a composite type.')}`

function of(part: string, name: string, says: string, type?: string): string {
  const chosen = (place: string) =>
    type === undefined ? place : `${place} extends { ${type}: infer ${type} } ? ${type} : never`
  return `
/** ${says} */
export type ${name}<
  At extends keyof DefaultSchema["${part}"] | InSchema,
  Name extends At extends InSchema ? keyof Database[At["schema"]]["${part}"] : never = never,
> = At extends InSchema
  ? ${chosen(`Database[At["schema"]]["${part}"][Name]`)}
  : At extends keyof DefaultSchema["${part}"]
    ? ${chosen(`DefaultSchema["${part}"][At]`)}
    : never
`
}
