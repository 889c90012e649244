import { fail } from '#databases/failures.ts'

/** A body as it came: its shape may have been checked, but nothing here relies on that. */
export type Body = Readonly<Record<string, unknown>>

/** How columns are named by requests. */
export type Naming = {
  /** `gateway.force_camel_case_to_snake_case`. */
  readonly snakeCase?: boolean
}

export function flag(body: Body, field: string, otherwise: boolean): boolean {
  const value = body[field]
  return typeof value === 'boolean' ? value : otherwise
}

export function text(body: Body, field: string): string | undefined {
  const value = body[field]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw fail('invalid_identifier', { details: { field } })
}

/** Aliases of one field: several may stand when they say the same. */
export function oneOf(body: Body, fields: readonly string[], code: 'missing_table'): string | undefined {
  const values = new Set(fields.map((field) => text(body, field)).filter((value) => value !== undefined))
  if (values.size > 1)
    throw fail(code, { message: `${fields.join(', ')} contradict each other`, details: { fields } })
  return values.values().next().value
}

export function whole(body: Body, field: string): number | undefined {
  const value = body[field]
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
  throw fail('invalid_limit', { details: { field } })
}

export const renaming = (options: Naming) => (options.snakeCase ? snakeCased : (name: string) => name)

/** `userId` → `user_id`, `HTTPStatus` → `http_status`. */
export const snakeCased = (name: string): string =>
  name
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
