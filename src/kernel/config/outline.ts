import { type TSchema, Type } from 'typebox'
import { entryOf } from './setting.ts'

/** A section or a setting of the configuration, with its path. */
type SchemaAtPath = { readonly path: readonly string[]; readonly schema: TSchema }

/** In a path: any name that the operator chooses. */
export const ANY_NAME = 'NAME'

/** Every section and every setting below `schema`, each section before its settings. */
export function outline(schema: TSchema, path: readonly string[] = []): SchemaAtPath[] {
  const inner = Type.IsObject(schema)
    ? Object.entries(schema.properties)
    : Type.IsRecord(schema)
      ? [[ANY_NAME, Type.RecordValue(schema)] as const]
      : []
  return inner.flatMap(([name, schema]) => {
    const entry = entryOf(schema)
    return [
      { path: [...path, name], schema },
      ...(entry === undefined
        ? outline(schema, [...path, name])
        : outline(entry, [...path, `${name}${ENTRY}`])),
    ]
  })
}

/** In a path: an entry of the list of this name. */
const ENTRY = '[]'

/** Whether the path leads into an entry of a list. */
export const isInList = (path: readonly string[]): boolean => path.some((name) => name.endsWith(ENTRY))

export function schemaAt(schema: TSchema, [name, ...path]: readonly string[]): TSchema | undefined {
  if (name === undefined) return schema
  if (Type.IsRecord(schema)) return schemaAt(Type.RecordValue(schema), path)
  if (!Type.IsObject(schema) || !Object.hasOwn(schema.properties, name)) return undefined
  const inner = schema.properties[name]
  return inner && schemaAt(inner, path)
}
