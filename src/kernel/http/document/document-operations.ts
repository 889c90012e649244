import type { JsonSchema } from './components.ts'

/**
 * The document with the responses to failures once, in `components.responses`. A reference keeps the description of its operation, which
 * lists the codes. Expects schemas that are components already.
 */
export function withSharedFailures(document: JsonSchema): JsonSchema {
  const responses: Record<string, JsonSchema> = {}
  const shared = (response: JsonSchema): JsonSchema => {
    const { description, ...rest } = response
    const error = errorOf(rest)
    if (error === undefined) return response
    const name = rest.headers === undefined ? error : `${error}WithRetryAfter`
    responses[name] = { description: 'A failure. `code` tells which', ...rest }
    return { $ref: `#/components/responses/${name}`, description }
  }
  const changed = withOperations(document, ({ responses = {}, ...operation }) => ({
    ...operation,
    responses: eachOf(responses as JsonSchema, shared), // by status
  }))
  return { ...changed, components: { ...(changed.components as JsonSchema), responses } }
}

/** `AuthError` or `GatewayError`, where the body of the response is one. */
function errorOf({ content }: JsonSchema): string | undefined {
  const { 'application/json': { schema: { $ref = '' } = {} } = {} } = (content ?? {}) as Content
  return /\/(AuthError|GatewayError)$/.exec($ref)?.[1]
}

/** The document in which a body is required unless the service takes an absent one: an object of which no member is required. */
export function withOptionalBodies(document: JsonSchema): JsonSchema {
  return withOperations(document, ({ requestBody, ...operation }) =>
    requestBody === undefined
      ? operation
      : { ...operation, requestBody: { ...requestBody, required: isRequired(requestBody as Body) } },
  )
}

type Content = Readonly<Record<string, { readonly schema?: BodySchema }>>
type Body = { readonly content: Content }
type BodySchema = {
  readonly $ref?: string
  readonly type?: string
  readonly required?: readonly string[]
  readonly minProperties?: number
}

const isRequired = ({ content }: Body): boolean =>
  Object.values(content).every(
    ({ schema: { type, required = [], minProperties = 0 } = {} }) =>
      type !== 'object' || required.length > 0 || minProperties > 0,
  )

const withOperations = (document: JsonSchema, change: (operation: JsonSchema) => JsonSchema): JsonSchema => ({
  ...document,
  paths: eachOf(document.paths as JsonSchema, (methods) => eachOf(methods, change)),
})

/** Members that are objects, each changed. */
const eachOf = (members: JsonSchema, change: (member: JsonSchema) => JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member as JsonSchema)]))
