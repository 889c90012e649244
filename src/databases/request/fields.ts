import { fail } from '#databases/failures.ts'

/** A body as it was sent. Its shape may have been validated, but nothing here relies on that. */
export type Body = Readonly<Record<string, unknown>>

/** How requests name columns. */
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

/** Reads one field with aliases; several may be given when their values are equal. */
export function oneOf(
  body: Body,
  fields: readonly string[],
  code: 'missing_table' | 'invalid_identifier',
): string | undefined {
  const values = new Set(fields.map((field) => text(body, field)).filter((value) => value !== undefined))
  if (values.size > 1)
    throw fail(code, { message: `${fields.join(', ')} contradict each other`, details: { fields } })
  return values.values().next().value
}

export function wholeNumber(body: Body, field: string): number | undefined {
  const value = body[field]
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : plainNumber(value)
  if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return number
  throw fail('invalid_limit', { details: { field } })
}

/** Converts a number that was parsed as raw JSON, like `10.0` (json.ts). */
const plainNumber = (value: unknown): unknown => (JSON.isRawJSON(value) ? Number(value.rawJSON) : value)

export const renaming = (options: Naming) => (options.snakeCase ? snakeCased : (name: string) => name)

/** `userId` → `user_id`, `HTTPStatus` → `http_status`. It scans each name once, so the time is linear in the length. */
export function snakeCased(name: string): string {
  let text = ''
  for (let at = 0; at < name.length; at++) {
    const isBoundary =
      at > 0 &&
      isCapital(name, at) &&
      (isLowerOrDigit(name, at - 1) || (isCapital(name, at - 1) && isLower(name, at + 1)))
    text += isBoundary ? `_${name.charAt(at)}` : name.charAt(at)
  }
  return text.toLowerCase()
}

const isCapital = (name: string, at: number): boolean => /[A-Z]/.test(name.charAt(at))
const isLower = (name: string, at: number): boolean => /[a-z]/.test(name.charAt(at))
const isLowerOrDigit = (name: string, at: number): boolean => /[a-z0-9]/.test(name.charAt(at))
