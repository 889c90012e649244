import { type TObject, type TRecord, type TSchema, Type } from 'typebox'
import { mapOf, type Values } from './defaults.ts'
import { parseJson, variableOf } from './environment.ts'
import type { Place, Report } from './problems.ts'
import { builtInName, entryOf, isSetting, nameForm, type Setting } from './setting.ts'
import { suggestSetting } from './suggestions.ts'
import { type Tree, treeOfJson } from './tree.ts'

/** Parses the tree into typed values and reports what does not fit. Adds no defaults. */
export function readSettings(settings: TObject, tree: Tree, report: Report): Values {
  return readSection(settings, tree, '', { settings, report })
}

type SettingsReader = { readonly settings: TObject; readonly report: Report }

function read(schema: TSchema, tree: Tree, path: string, reader: SettingsReader): unknown {
  if (tree.kind === 'faulty') return undefined
  if (Type.IsObject(schema)) return readSection(schema, tree, path, reader)
  if (Type.IsRecord(schema)) return readMap(schema, tree, path, reader)
  const entry = entryOf(schema)
  if (entry !== undefined) return readEntries(entry, tree, path, reader)
  if (tree.kind === 'nothing' || !isSetting(schema)) return undefined
  return Type.IsArray(schema) ? readList(schema, tree, path, reader) : readValue(schema, tree, path, reader)
}

function readSection(schema: TObject, tree: Tree, path: string, reader: SettingsReader): Values {
  const names = Object.keys(schema.properties)
  const entries = entriesOf(tree, path, `a section with ${names.join(', ')}`, reader)
  if (!entries) return {}
  const values = [...entries].map(([name, inner]) => {
    const at = join(path, name)
    const known = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (!known) reader.report(inner.place, at, unknown(reader.settings, at, names, inner.place))
    return [name, known && read(known, inner, at, reader)] as const
  })
  // TypeBox omits `required` when every setting is optional, against its types.
  for (const name of schema.required ?? []) {
    const missing = (entries.get(name)?.kind ?? 'nothing') === 'nothing'
    const setting = schema.properties[name]
    if (missing && setting && isRequired(setting)) {
      reader.report(tree.place, join(path, name), `is required: ${setting.form.allowed}`)
    }
  }
  return Object.fromEntries(values.filter(([, value]) => value !== undefined))
}

const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)

const isRequired = (schema: TSchema): schema is TSchema & Setting =>
  isSetting(schema) &&
  !Type.IsOptional(schema) &&
  schema.default === undefined &&
  schema.derived === undefined

function unknown(settings: TObject, path: string, names: readonly string[], place: Place): string {
  const meant = suggestSetting(settings, path, names)
  if (!meant) return `unknown setting; known here: ${names.join(', ')}`
  const isVariable = place.line === undefined
  return `unknown setting; did you mean ${meant}${isVariable ? ` (${variableOf(meant)})` : ''}?`
}

function readMap(schema: TRecord, tree: Tree, path: string, reader: SettingsReader): Values {
  const entries =
    entriesOf(tree, path, 'a section with names of your choice', reader) ?? new Map<string, Tree>()
  const form = nameForm(schema)
  const present = [...entries].filter(([name, inner]) => !(name === builtInName(schema) && isOff(inner)))
  const values = present.map(([name, inner]) => {
    const at = join(path, name)
    const isNamed = form.parse(name) !== undefined
    if (!isNamed) reader.report(inner.place, at, `a ${form.name} must be ${form.allowed}`)
    return [name, isNamed ? read(Type.RecordValue(schema), inner, at, reader) : undefined] as const
  })
  return mapOf(values.filter(([, value]) => value !== undefined))
}

/** `false` in place of a section: what is built in under that name is switched off. */
export const isOff = (tree: Tree | undefined): boolean =>
  tree?.kind === 'text' && tree.text.trim() === 'false'

function entriesOf(
  tree: Tree,
  path: string,
  allowed: string,
  reader: SettingsReader,
): ReadonlyMap<string, Tree> | undefined {
  if (tree.kind === 'section') return tree.entries
  if (tree.kind === 'nothing') return new Map()
  if (tree.kind !== 'faulty') reader.report(tree.place, path, `must be ${allowed}`)
  return undefined
}

function readList(schema: Setting, tree: Tree, path: string, reader: SettingsReader): unknown[] | undefined {
  const items = itemsOf(tree)
  if (!items) reader.report(tree.place, path, `must be a list, each item ${schema.form.allowed}`)
  return items?.map((item, i) => readValue(schema, item, `${path}[${i}]`, reader))
}

function readEntries(
  entry: TSchema,
  tree: Tree,
  path: string,
  reader: SettingsReader,
): unknown[] | undefined {
  if (tree.kind === 'nothing') return undefined
  const items = itemsOf(tree)
  if (!items) reader.report(tree.place, path, 'must be a list of sections')
  return items?.map((item, i) => read(entry, item, `${path}[${i}]`, reader))
}

/** A text is a JSON array or comma-separated; in the file too, since `${NAME}` may contain a list. */
function itemsOf(tree: Tree): readonly Tree[] | undefined {
  if (tree.kind === 'list') return tree.items
  if (tree.kind !== 'text') return undefined
  if (tree.text.trimStart().startsWith('[')) {
    const json = treeOfJson(parseJson(tree.text) ?? null, tree.place)
    return json.kind === 'list' ? json.items : undefined
  }
  const texts = tree.text.split(',').filter((text) => text.trim() !== '')
  return texts.map((text) => ({ kind: 'text', text: text.trim(), place: tree.place }))
}

function readValue({ form, secret }: Setting, tree: Tree, path: string, reader: SettingsReader): unknown {
  if (tree.kind === 'faulty') return undefined
  const value = tree.kind === 'text' ? form.parse(tree.text) : undefined
  // The message does not repeat a secret: it may be a valid one in the wrong form.
  const what = tree.kind === 'text' && !secret ? `; ${quoted(tree.text)} is not` : ''
  if (value === undefined) reader.report(tree.place, path, `must be ${form.allowed}${what}`)
  return value
}

const quoted = (text: string) => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
