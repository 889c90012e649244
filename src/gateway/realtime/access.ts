import type { FastifyRequest } from 'fastify'
import type { Access } from '#kernel/http/access.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { PROVING, redeemTicket, type Ticket } from './tickets.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** By which the stream was opened. */
    realtimeTicket: Ticket | undefined
  }
}

/** Addresses stand in logs and histories, so that a stream takes no key there. */
export const withoutKeyInQuery = (data: Access): Access => ({
  ...data,
  failures: [...(data.failures ?? []), 'key_in_query'],
  authorize(request, reply) {
    refuseKeyInQuery(request)
    return data.authorize(request, reply)
  },
})

/** Lets in the caller of a ticket: the same headers are judged again as those that it was given for. */
export const ticketAccess = (kernel: Kernel, data: Access): Access => ({
  ...data,
  name: 'ticket of a key or session',
  security: [],
  failures: [...(data.failures ?? []), 'key_in_query', 'invalid_ticket'],
  needsClient: false,
  takesProject: false,
  async authorize(request, reply) {
    if (request.realtimeTicket === undefined) {
      refuseKeyInQuery(request)
      request.realtimeTicket = await redeemed(kernel, request)
      putOn(request, request.realtimeTicket)
    }
    return data.authorize(request, reply)
  },
})

function refuseKeyInQuery({ query }: FastifyRequest): void {
  if ((query as { api_key?: unknown }).api_key !== undefined) throw fail('key_in_query') // any query string string
}

async function redeemed(kernel: Kernel, request: FastifyRequest): Promise<Ticket> {
  const { ticket } = request.query as { ticket?: unknown } // any query string string
  const lastId = request.headers['last-event-id']
  // A HEAD request would use it up for nothing.
  if (typeof ticket !== 'string' || ticket === '' || request.method !== 'GET') throw fail('invalid_ticket')
  try {
    return await redeemTicket(
      kernel,
      ticket,
      typeof lastId === 'string' && lastId !== '' ? lastId : undefined,
    )
  } catch (error) {
    // Guesses are counted.
    await kernel.limits.consume('default', request.clientAddress)
    throw error
  }
}

/** Nothing that the browser sends beside the ticket counts. */
function putOn(request: FastifyRequest, { headers }: Ticket): void {
  const { raw } = request
  for (const name of PROVING) {
    delete raw.headers[name]
    const value = headers[name]
    if (value !== undefined) raw.headers[name] = value as string // cookies and all others are one text
  }
  request.cookies = headers.cookie === undefined ? {} : request.server.parseCookie(headers.cookie)
}
