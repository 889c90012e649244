import type { DriverStats } from '#databases/drivers/driver.ts'
import { IN_DOUBT } from '#databases/drivers/postgres/protocol/errors.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import { isJson, refusalOf, type Subject } from '#databases/drivers/supabase/errors.ts'
import { type JsonKind, jsonKind } from '#databases/drivers/supabase/json-kind.ts'
import { createMask, type Mask } from '#databases/drivers/supabase/masking.ts'
import { addressOf, headersOf, type PostgrestRequest } from '#databases/drivers/supabase/request.ts'
import { createSender, type SenderOptions } from '#databases/drivers/supabase/sender.ts'
import { fail } from '#databases/failures.ts'
import type { OutboundAnswer } from '#kernel/http/outbound/outbound.ts'

export type ExchangeOptions = SenderOptions & {
  /** URL of PostgREST, without a trailing slash. */
  readonly root: string
  readonly key: string | undefined
  /** The most bytes of an answer (`limits.answer`), which is collected before it is passed on. */
  readonly answerBytes: number
}

export type Answer = {
  /** JSON as received, or empty. */
  readonly body: Buffer
  readonly is: JsonKind | { readonly kind: 'nothing' }
  /** The number of matching rows, if requested. */
  readonly total: number | undefined
}

export type Exchange = {
  run(request: PostgrestRequest, signal?: AbortSignal): Promise<Answer>
  /** JSON of the OpenAPI document of a schema. */
  describe(schema: string): Promise<string>
  /** Throws when PostgREST does not answer. */
  probe(): Promise<void>
  stats(): DriverStats
}

/** The most bytes of the OpenAPI document, which stays in memory: several thousand tables. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024

export function createExchange(options: ExchangeOptions): Exchange {
  const { root, key } = options
  const { send, stats } = createSender(options)
  const mask = createMask(key)
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...(key !== undefined && { apikey: key, authorization: `Bearer ${key}` }),
  }

  async function run(request: PostgrestRequest, signal?: AbortSignal): Promise<Answer> {
    const { method, body, subject } = request
    const answer = await send(addressOf(root, request), {
      maxBytes: options.answerBytes,
      method,
      headers: { ...headers, ...headersOf(request) },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    })
    return read(answer, options.answerBytes, mask, subject)
  }

  return {
    run,
    async describe(schema) {
      const accept = 'application/openapi+json'
      const asked = {
        headers: { ...headers, accept, 'accept-profile': schema },
        maxBytes: MAX_DOCUMENT_BYTES,
      }
      const answer = await send(`${root}/`, asked)
      return (await read(answer, MAX_DOCUMENT_BYTES, mask)).body.toString()
    },
    async probe() {
      const answer = await send(`${root}/`, { method: 'HEAD', headers, maxBytes: options.answerBytes })
      if (answer.status >= 400) throw refusalOf(answer, mask)
      if (answer.status >= 300 || !isJson(answer.headers))
        throw fail('client_refused', { hint: 'This is not PostgREST.' })
    },
    stats,
  }
}

async function read(
  answer: OutboundAnswer,
  maxBytes: number,
  mask: Mask,
  subject?: Subject,
): Promise<Answer> {
  const { status, headers, body, isWhole } = answer
  const total = totalIn(headers['content-range'], status)
  // The page begins after the last row, and the rows are counted.
  if (status === 416 && total !== undefined)
    return { body: Buffer.from('[]'), is: { kind: 'rows', count: 0 }, total }
  if (status >= 400) throw refusalOf(answer, mask, subject)
  if (!isWhole) throw answerTooLarge(maxBytes)
  if (status >= 300 || (body.length > 0 && !isJson(headers)))
    throw strange(`${status}, and not as PostgREST does`)
  const is = body.length === 0 ? ({ kind: 'nothing' } as const) : await jsonKind(body)
  if (is === undefined) throw strange(`${status} with what is no JSON`)
  return { body, is, total }
}

/** `0-9/100`, with an asterisk for an unknown side. https://docs.postgrest.org/en/v13/references/api/pagination_count.html */
function totalIn(range: string | string[] | undefined, status: number): number | undefined {
  if (range === undefined) return undefined
  const [given, total] = /^(?:\*|\d{1,15}-\d{1,15})\/(\*|\d{1,15})$/.exec(String(range)) ?? []
  if (given === undefined) throw strange(`${status} with a content-range that is none`)
  return total === '*' || total === undefined ? undefined : Number(total)
}

/** A redirect, an HTML page, or malformed rows: not PostgREST, or a proxy before it. */
export const strange = (what: string) =>
  fail('database_error', { hint: IN_DOUBT, cause: new Error(`The backend answered ${what}`) })
