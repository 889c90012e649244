import { type TProperties, Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import { FILTER_OPERATORS, SEARCHED, TEXT_OPERATORS, userFields } from './list-users.ts'

/** Parameters that search. */
export const SEARCH = {
  searchValue: Type.Optional(Type.String({ maxLength: 320 })),
  searchField: Type.Optional(OneOf(SEARCHED, { default: 'email' })),
  searchOperator: Type.Optional(OneOf(TEXT_OPERATORS, { default: 'contains' })),
} satisfies TProperties

/** Parameters that filter, by built-in and custom fields. */
export const filterOf = (config: Config) =>
  ({
    filterField: Type.Optional(OneOf(userFields(config), { default: 'email' })),
    filterOperator: Type.Optional(OneOf(FILTER_OPERATORS, { default: 'eq' })),
    filterValue: Type.Optional(
      Type.Unsafe<string | readonly string[]>({
        type: ['string', 'array'],
        items: { type: 'string', maxLength: 320 },
        // Together they fit in the headers of a request (`limits.header`).
        maxItems: 32,
        maxLength: 8_000,
        description: 'For `in` and `not_in` several, as repeated parameters or joined by commas',
      }),
    ),
  }) satisfies TProperties
