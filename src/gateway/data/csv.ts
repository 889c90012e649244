import type { FastifyReply, FastifyRequest } from 'fastify'
import { csvCell, csvLine } from '#databases/drivers/csv-lines.ts'
import type { LinesResult, ResultColumn, RowsFacts } from '#databases/drivers/driver.ts'
import { fail } from '#databases/failures.ts'
import type { Body } from '#databases/request/fields.ts'
import { CSV_TYPE, JSON_TYPE, notAcceptable, preferredType } from '#kernel/http/accept.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { columnsOf, prepare } from '../prepare.ts'
import { emitEvent, type ReadEvent } from './data.ts'
import { around, sendWhole } from './send-result.ts'

/**
 * Media types of reads. The OpenAPI document has JSON alone as their answer, or the types of generated clients would be unions with a text; it describes
 * the parameter `format`.
 */
export const ROWS_TYPES = [JSON_TYPE, CSV_TYPE]

/** By `?format=`, or the header Accept. */
export function wantsCsv({ query, headers: { accept } }: FastifyRequest): boolean {
  const { format } = query as { readonly format?: string } // checked by InFormat
  if (format !== undefined) return format === 'csv'
  // The most common values, checked first.
  if (accept === undefined || accept === '*/*' || accept === JSON_TYPE) return false
  return preferredType(accept, ROWS_TYPES) === CSV_TYPE
}

/** For operations and answers that are no rows. */
export const onlyJson = () => notAcceptable([JSON_TYPE])

type CsvFile = LinesResult & {
  /** Without the ending. */
  readonly name: string
  readonly columns: readonly ResultColumn[]
}

/** Reads as `fetchRows` does, without the read cache. Events have no rows. */
export async function fetchCsv(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  event: ReadEvent = 'gateway_fetch',
): Promise<CsvFile> {
  if ((body.group_by ?? undefined) !== undefined) throw onlyJson()
  const fetch = await prepare(kernel, caller, body, 'csv')
  const { lines, facts } = await fetch.run()
  const max = kernel.config.gateway.max_rows
  if (!(Symbol.asyncIterator in lines)) requireAll(facts(), max)
  await emitEvent(kernel, fetch, { affected: 0, json: undefined }, event)
  const whole = () => requireAll(facts(), max)
  return { name: fetch.plan.table.name, columns: columnsOf(fetch.plan), lines, facts: whole }
}

/** JSON says that it has cut rows, a file cannot: it has all of them, or none. */
function requireAll(facts: RowsFacts, maximum: number): RowsFacts {
  if (!facts.hasMore) return facts
  throw fail('result_too_large', {
    message: `There are more than ${maximum} rows (gateway.max_rows)`,
    hint: 'Read them in parts with limit and offset.',
    details: { maximum },
  })
}

/** A stream that turns out to be cut ends unfinished. */
export function sendCsv(reply: FastifyReply, { name, columns, lines, facts }: CsvFile): FastifyReply {
  const { format } = reply.request.query as { readonly format?: string } // checked by InFormat
  if (format !== undefined) reply.header('content-disposition', attachment(`${name}.csv`))
  const head = Buffer.from(columns.length === 0 ? '' : csvLine(columns.map(({ name }) => csvCell(name))))
  const type = `${CSV_TYPE}; charset=utf-8; header=present`
  if (Symbol.asyncIterator in lines) {
    const end = () => {
      facts()
      return NOTHING
    }
    return reply.type(type).sendLong(around(lines, head, end))
  }
  const { total } = facts()
  if (total !== undefined) reply.header(HEADER.count, total)
  return sendWhole(reply, [head, ...lines], type)
}

const NOTHING = Buffer.alloc(0)

/** RFC 6266, with a name for readers that know no other characters. */
const attachment = (name: string): string =>
  `attachment; filename="${name.replaceAll(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)}`
