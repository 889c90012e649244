import type { TObject, TSchema } from 'typebox'
import type { Config } from '#kernel/config/config.ts'
import type { CustomField } from '#kernel/field-values.ts'
import { Parsed } from '#kernel/http/schemas.ts'
import type { By } from './acceptable.ts'

type Fields = {
  readonly by: By
  /** Whether required ones have to be there. */
  readonly isNew?: boolean
}

/** The body with the custom fields that its sender may set. The verb reads and checks them. */
export function withFields<T extends TObject>({ auth }: Config, body: T, { by, isNew = false }: Fields): T {
  const fields = Object.entries(auth.user.fields).filter(([, { input }]) => input || by === 'operator')
  const needed = fields.filter(
    ([, { required, default: otherwise }]) => isNew && required && otherwise === undefined,
  )
  if (fields.length === 0) return body
  // Further members of the same kind of schema.
  return {
    ...body,
    properties: {
      ...body.properties,
      ...Object.fromEntries(fields.map(([name, field]) => [name, Parsed(inputSchema(field))])),
    },
    required: [...(body.required ?? []), ...needed.map(([name]) => name)],
  } as T
}

const inputSchema = (field: CustomField): TSchema => fieldSchema(field, !field.required)

/** A field in an answer. A user from before the setting, or with a value that it does not allow any more, has null. */
export const outputSchema = (field: CustomField): TSchema => fieldSchema(field, true)

function fieldSchema({ type, values }: CustomField, isNullable: boolean): TSchema {
  const nullable = (schema: { readonly type: string; readonly enum?: readonly string[] }) =>
    isNullable
      ? {
          ...schema,
          type: [schema.type, 'null'],
          ...(schema.enum !== undefined && { enum: [...schema.enum, null] }),
        }
      : schema
  const string = { type: 'string', ...(values.length > 0 && { enum: values }) }
  if (type === 'string[]') return nullable({ type: 'array', ...{ items: string } })
  if (type === 'number[]') return nullable({ type: 'array', ...{ items: { type: 'number' } } })
  if (type === 'date') return nullable({ type: 'string', ...{ format: 'date-time' } })
  return nullable(type === 'string' ? string : { type })
}
