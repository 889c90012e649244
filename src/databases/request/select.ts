import { fail } from '#databases/failures.ts'
import { type ColumnOptions, parseColumns } from '#databases/request/columns.ts'
import type { ColumnTerm } from '#databases/request/request.ts'
import { meantMember } from '#kernel/closest-name.ts'

/**
 * The structured `select`: `{ id: true, title: "name", author: { select: { name: true } } }`.
 * `true` selects the column, a text is the column's name when the key is an alias, an object is a relation (`from` names it when the key is an alias).
 */
export function readSelect(input: unknown, options: ColumnOptions): ColumnTerm[] {
  const budget = { left: options.columns }
  return readLevel(input, options, budget, options.nesting)
}

function readLevel(
  input: unknown,
  options: ColumnOptions,
  budget: { left: number },
  nesting: number,
): ColumnTerm[] {
  if (nesting < 0) throw fail('too_deep', { details: { field: 'select' } })
  if (typeof input === 'string') return parseColumns(input, options)
  if (Array.isArray(input) && input.length > 0 && input.every((item) => typeof item === 'string'))
    return parseColumns(input, options)
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw malformed()
  const terms = Object.entries(input).flatMap(([key, value]) =>
    readMember(key, value, options, budget, nesting),
  )
  if (terms.length === 0) throw malformed()
  return terms
}

function readMember(
  key: string,
  value: unknown,
  options: ColumnOptions,
  budget: { left: number },
  nesting: number,
): ColumnTerm[] {
  if (value === false) return []
  if (--budget.left < 0)
    throw fail('too_many_columns', { details: { field: 'select', maximum: options.columns } })
  if (value === true)
    return [key === '*' ? { kind: 'all' } : { kind: 'column', name: options.rename(key), alias: key }]
  if (typeof value === 'string' && value !== '')
    return [{ kind: 'column', name: options.rename(value), alias: key }]
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !('select' in value))
    throw malformed()
  for (const name of Object.keys(value)) requireRelationMember(name)
  const { select, from = key, schema, hint } = value as Readonly<Record<string, unknown>>
  if (typeof from !== 'string' || !optionalText(schema) || !optionalText(hint)) throw malformed()
  const columns = readLevel(select, { ...options, owner: () => false }, budget, nesting - 1)
  return [
    { kind: 'relation', name: from, alias: key, ...(schema && { schema }), ...(hint && { hint }), columns },
  ]
}

function requireRelationMember(name: string): void {
  const meant = RELATION_MEMBERS.includes(name) ? undefined : meantMember(name, RELATION_MEMBERS)
  if (meant !== undefined)
    throw fail('invalid_structured_select_request', {
      message: `There is no member ${name} of a relation; did you mean ${meant}?`,
      details: { field: 'select' },
    })
}

const RELATION_MEMBERS = ['select', 'from', 'schema', 'hint']

const optionalText = (value: unknown): value is string | undefined =>
  value === undefined || typeof value === 'string'

const malformed = () =>
  fail('invalid_structured_select_request', {
    hint: 'Write { "column": true, "alias": "column", "relation": { "select": { … } } }.',
    details: { field: 'select' },
  })
