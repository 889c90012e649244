import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { parseJson } from '#databases/request/json.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { fail } from '../errors.ts'
import { consumeTicket, insertTicket, reuseTicket } from './store.ts'
import type { AskedStream } from './stream-parts.ts'

/** A redeemed ticket. */
export type Ticket = {
  readonly asked: AskedStream
  /** The headers of the request that it was given for, as far as they say who the caller is. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** Begins the ids of its events. */
  readonly proof: string
}

/** Headers that say who the caller is, and on which client. */
export const PROVING = [
  HEADER.client,
  HEADER.apiKey,
  HEADER.apiKeyAlias,
  HEADER.serviceKey,
  HEADER.sessionToken,
  HEADER.sessionBearer,
  HEADER.serviceSession,
  'authorization',
  'cookie',
  'origin',
  'referer',
  'sec-fetch-site',
] as const

/** Milliseconds until the first use. */
const FIRST_USE = 30_000
/** Milliseconds from one use to the next. */
const NEXT_USE = 86_400_000

/** A ticket for a caller who has been let in with these headers. The address of a stream has it in place of them. */
export async function issueTicket(
  { db, now, random, secrets }: Kernel,
  headers: IncomingHttpHeaders,
  asked: AskedStream,
): Promise<{ readonly ticket: string; readonly expires_at: Date }> {
  const ticket = randomToken(random)
  const ticketHash = hash('sha256', ticket, 'buffer')
  const expiresAt = new Date(now().getTime() + FIRST_USE)
  const proving = Object.fromEntries(PROVING.map((name) => [name, headers[name]]))
  const sealed = secrets.seal('realtime-ticket', JSON.stringify(proving), ticketHash.toString('hex'))
  await insertTicket(db, { ticketHash, sealed, body: JSON.stringify(asked), expiresAt })
  return { ticket, expires_at: expiresAt }
}

/**
 * Redeems a ticket: once, and again only with the id of an event that its stream has sent. The address of a stream stands in logs of proxies, the
 * ids do not.
 */
export async function redeemTicket(
  { db, now, secrets }: Kernel,
  ticket: string,
  lastId: string | undefined,
): Promise<Ticket> {
  const ticketHash = hash('sha256', ticket, 'buffer')
  const owner = ticketHash.toString('hex')
  const proof = secrets.derive('realtime-event', owner).slice(0, PROOF)
  const isAgain = lastId !== undefined && isProof(lastId, proof)
  if (lastId !== undefined && !isAgain) throw fail('invalid_ticket')
  const at = now()
  const times = { now: at, until: new Date(at.getTime() + NEXT_USE) }
  const row = await (isAgain ? reuseTicket : consumeTicket)(db, ticketHash, times)
  const headers = row && secrets.open('realtime-ticket', row.sealed, owner)
  if (row === undefined || headers === undefined) throw fail('invalid_ticket')
  // Numbers of its conditions keep all digits, as in a body.
  const asked = parseJson(row.body) as unknown as AskedStream // as it was written
  return { asked, headers: JSON.parse(headers), proof }
}

/** Characters, of six bits each. */
const PROOF = 22

const isProof = (id: string, proof: string): boolean => {
  const given = Buffer.from(id.slice(0, PROOF))
  return given.length === PROOF && timingSafeEqual(given, Buffer.from(proof))
}
