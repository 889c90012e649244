import type { Condition } from '#databases/request/request.ts'

/** The rows of these keys: texts of their values, in the order of the names. */
export function keyCondition(
  names: readonly string[],
  keys: readonly { readonly values: readonly string[] }[],
): Condition<string> {
  const [column = '', ...others] = names
  if (others.length === 0)
    return { kind: 'compare', column, operator: 'in', value: keys.map(({ values }) => values[0] ?? null) }
  return {
    kind: 'any',
    terms: keys.map(({ values }) => ({
      kind: 'all',
      terms: names.map((column, index) => ({
        kind: 'compare',
        column,
        operator: 'eq',
        value: values[index] ?? null,
      })),
    })),
  }
}

/** The limit of a page of rows by their keys: rows of child tables may have a key more than once. */
export const EVERY_ROW = 2_147_483_647
