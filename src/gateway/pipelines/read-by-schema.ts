import { type TObject, type TRecord, type TSchema, Type } from 'typebox'
import { parseJson } from '#databases/request/json.ts'
import { closestName } from '#kernel/closest-name.ts'
import type { Report } from '#kernel/config/problems.ts'
import type { Tree } from '#kernel/config/tree.ts'
import { PARSED } from '#kernel/http/schemas.ts'

/**
 * The value of a part of a YAML file by the schema that a body of a request has, with a report of every deviation. Members that their verb
 * parses, as conditions, are read as JSON.
 */
export function readBySchema(schema: TSchema, tree: Tree, at: string, report: Report): unknown {
  if (tree.kind === 'faulty') return undefined
  if (PARSED in schema) return jsonOf(tree)
  if (Type.IsObject(schema)) return readObject(schema, tree, at, report)
  if (Type.IsRecord(schema)) return readRecord(schema, tree, at, report)
  if (tree.kind === 'nothing') return undefined
  const value = tree.kind === 'text' ? scalarOf(schema, tree.text) : undefined
  if (value === undefined) report(tree.place, at, `must be ${allowedBy(schema)}`)
  return value
}

function readObject(schema: TObject, tree: Tree, at: string, report: Report): unknown {
  const names = Object.keys(schema.properties)
  if (tree.kind === 'nothing') return undefined
  if (tree.kind !== 'section')
    return void report(tree.place, at, `must be a section with ${names.join(', ')}`)
  const members = [...tree.entries].map(([name, inner]) => {
    const known = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    const place = at === '' ? name : `${at}.${name}`
    if (known === undefined) report(inner.place, place, unknownField(name, names))
    return [name, known && readBySchema(known, inner, place, report)] as const
  })
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

function unknownField(name: string, names: readonly string[]): string {
  const meant = closestName(name, names)
  return meant === undefined
    ? `unknown field; known here: ${names.join(', ')}`
    : `unknown field; did you mean ${meant}?`
}

/** Null is a value here: it leaves a column out. */
function readRecord(schema: TRecord, tree: Tree, at: string, report: Report): unknown {
  if (tree.kind === 'nothing') return undefined
  if (tree.kind !== 'section') return void report(tree.place, at, 'must be a section')
  return Object.fromEntries(
    [...tree.entries].map(([name, inner]) => [
      name,
      inner.kind === 'nothing'
        ? null
        : readBySchema(Type.RecordValue(schema), inner, `${at}.${name}`, report),
    ]),
  )
}

function scalarOf(schema: TSchema, text: string): unknown {
  if (Type.IsInteger(schema)) {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : undefined
    return value !== undefined && value >= minimumOf(schema) ? value : undefined
  }
  if (Type.IsBoolean(schema)) return text === 'true' ? true : text === 'false' ? false : undefined
  const words = wordsOf(schema)
  if (words !== undefined) return words.includes(text) ? text : undefined
  const { maxLength = Number.POSITIVE_INFINITY } = schema as { maxLength?: number } // of a JSON Schema of a text
  return text !== '' && text.length <= maxLength ? text : undefined
}

function allowedBy(schema: TSchema): string {
  if (Type.IsInteger(schema)) return `a whole number from ${minimumOf(schema)}`
  if (Type.IsBoolean(schema)) return 'true or false'
  const words = wordsOf(schema)
  if (words !== undefined) return words.length === 1 ? `${words[0]}` : `one of ${words.join(', ')}`
  const { maxLength } = schema as { maxLength?: number } // as above
  return maxLength === undefined ? 'text, not empty' : `text of 1 to ${maxLength} characters`
}

const minimumOf = (schema: TSchema): number => (schema as { minimum?: number }).minimum ?? 0 // of a JSON Schema

const wordsOf = (schema: TSchema): readonly string[] | undefined =>
  (schema as { enum?: readonly string[] }).enum // of a JSON Schema

/** A plain scalar is a number or a flag if JSON has the same, and otherwise text, as in YAML's core schema. Numbers keep their digits. */
function jsonOf(tree: Tree): unknown {
  if (tree.kind === 'list') return tree.items.map(jsonOf)
  if (tree.kind === 'section')
    return Object.fromEntries([...tree.entries].map(([name, inner]) => [name, jsonOf(inner)]))
  if (tree.kind !== 'text') return null
  return tree.isPlain === true ? (jsonScalar(tree.text) ?? tree.text) : tree.text
}

function jsonScalar(text: string): unknown {
  try {
    const value = parseJson(text)
    return typeof value === 'number' || typeof value === 'boolean' || JSON.isRawJSON(value)
      ? value
      : undefined
  } catch {
    return undefined
  }
}
