import type { Config } from './config/settings.ts'
import { instantFrom } from './instants.ts'

/** A field of users that the configuration adds (`auth.user.fields`). */
export type CustomField = Config['auth']['user']['fields'][string]

/** As it is stored and answered; a date is ISO 8601 in UTC. */
export type FieldValue = string | number | boolean | readonly string[] | readonly number[]

/** UTF-16 units of a text. A unique one has to fit in an index. */
const TEXT_MAX = 1_000
export const UNIQUE_TEXT_MAX = 255
const ITEMS_MAX = 100

/** The value as it is stored; undefined when it is none of the field. */
export function fieldValue(field: CustomField, given: unknown): FieldValue | undefined {
  switch (field.type) {
    case 'string':
      return textFrom(field, given)
    case 'number':
      return numberFrom(given)
    case 'boolean':
      return typeof given === 'boolean' ? given : undefined
    case 'date':
      return typeof given === 'string' && given.length <= 64 ? instantFrom(given)?.toISOString() : undefined
    case 'string[]':
      return listFrom(given, (item) => textFrom(field, item))
    case 'number[]':
      return listFrom(given, numberFrom)
  }
}

/** The value that a text of the configuration or the command line means. */
export function fieldValueOfText(field: CustomField, text: string): FieldValue | undefined {
  const scalar = (item: string): unknown => (field.type.startsWith('number') ? numberOf(item) : item)
  if (field.type.endsWith('[]'))
    return fieldValue(field, text === '' ? [] : text.split(',').map((item) => scalar(item.trim())))
  if (field.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : undefined
  return fieldValue(field, scalar(text))
}

/** Completes "NAME must be …". */
export function fieldRule({ type, values, unique }: CustomField): string {
  const one = values.length > 0 ? `one of ${values.join(', ')}` : undefined
  const rules = {
    string:
      one ?? `a text of at most ${unique ? UNIQUE_TEXT_MAX : TEXT_MAX} characters without control characters`,
    number: 'a number',
    boolean: 'true or false',
    date: 'a date like 2026-01-31T12:00:00Z',
    'string[]': `a list of at most ${ITEMS_MAX} texts${one === undefined ? '' : `, each ${one}`}`,
    'number[]': `a list of at most ${ITEMS_MAX} numbers`,
  }
  return rules[type]
}

function textFrom({ values, unique }: CustomField, given: unknown): string | undefined {
  const max = unique ? UNIQUE_TEXT_MAX : TEXT_MAX
  // Also bounds the work of NFC.
  if (typeof given !== 'string' || given.length > max) return undefined
  const text = given.normalize('NFC')
  const isAllowed = values.length === 0 || values.includes(text)
  return isAllowed && text.length <= max && text.isWellFormed() && !CONTROL.test(text) ? text : undefined
}

/** Control characters other than tabs and line breaks. */
const CONTROL = /(?![\t\n\r])\p{Cc}/u

const numberFrom = (given: unknown): number | undefined =>
  typeof given === 'number' && Number.isFinite(given) ? given : undefined

const numberOf = (text: string): unknown => (/^-?\d/.test(text) ? Number(text) : text)

function listFrom<T>(given: unknown, itemFrom: (item: unknown) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(given) || given.length > ITEMS_MAX) return undefined
  const items = given.map(itemFrom)
  return items.every((item) => item !== undefined) ? items : undefined
}
