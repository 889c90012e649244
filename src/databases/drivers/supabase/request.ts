import type { Subject } from '#databases/drivers/supabase/errors.ts'

/** A parameter of an address. Percent-encoding is done here, quoting in grammar.ts. */
export type Parameter = readonly [name: string, value: string]

/** A request to PostgREST. https://docs.postgrest.org/en/v13/references/api.html */
export type PostgrestRequest = {
  readonly schema: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the root; each segment is percent-encoded (`pathSegment`). */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly prefer: readonly string[]
  /** JSON. */
  readonly body?: string
  /** The table and columns that a failure can name. */
  readonly subject?: Subject
}

export function addressOf(root: string, { path, parameters }: PostgrestRequest): string {
  const url = new URL(`${root}/${path}`)
  for (const [name, value] of parameters) url.searchParams.append(name, value)
  return url.href
}

export const headersOf = ({
  schema,
  method,
  prefer,
  body,
}: PostgrestRequest): Readonly<Record<string, string>> => ({
  [method === 'GET' ? 'accept-profile' : 'content-profile']: schema,
  ...(prefer.length > 0 && { prefer: prefer.join(', ') }),
  ...(body !== undefined && { 'content-type': 'application/json' }),
})
