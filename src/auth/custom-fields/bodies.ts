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

function fieldSchema(field: CustomField, isNullable: boolean): TSchema {
  const schema = valueSchema(field)
  if (!isNullable) return schema
  return {
    ...schema,
    type: [schema.type, 'null'],
    ...(schema.enum !== undefined && { enum: [...schema.enum, null] }),
  }
}

type ValueSchema = {
  readonly type: string
  readonly enum?: readonly string[]
  readonly items?: ValueSchema
  readonly format?: string
}

function valueSchema({ type, values }: CustomField): ValueSchema {
  const string = { type: 'string', ...(values.length > 0 && { enum: values }) }
  switch (type) {
    case 'string':
      return string
    case 'string[]':
      return { type: 'array', items: string }
    case 'number[]':
      return { type: 'array', items: { type: 'number' } }
    case 'date':
      return { type: 'string', format: 'date-time' }
    default:
      return { type }
  }
}
