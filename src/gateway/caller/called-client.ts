import type { FastifyRequest } from 'fastify'
import type { Client, Clients } from '#databases/clients/clients.ts'
import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { HEADER, shownHeader } from '#kernel/http/header-names.ts'
import { fail } from '../errors.ts'

/** The client that the request names. Throws if it does not exist. */
export async function calledClient(request: FastifyRequest, clients: Clients): Promise<Client> {
  const name = clientHeader(request)
  const client = name === undefined ? undefined : await clientNamed(name, request, clients)
  if (client === undefined && (await clients.names()).length === 0)
    throw fail('no_client', {
      hint: 'Add an entry under clients in gatehouse.yaml, or register one: POST /admin/clients',
    })
  if (name === undefined) {
    throw fail('missing_client_header', { details: { missing_header: shownHeader(HEADER.client) } })
  }
  if (client === undefined) throw unknownClient()
  return client
}

export function clientHeader({ headers }: FastifyRequest): string | undefined {
  const name = headers[HEADER.client]
  return typeof name === 'string' && name !== '' ? name : undefined
}

/** For routes whose access rule has found the client. */
export function calledClientName(request: FastifyRequest): string {
  const name = clientHeader(request)
  if (name === undefined) throw new Error(`${request.routeOptions.url} does not require a client`)
  return name
}

export const unknownClient = () =>
  fail('unknown_client', { hint: 'List registered clients with GET /clients' })

/** Undefined for an unknown client. */
export const clientNamed = (name: string, request: FastifyRequest, clients: Clients) =>
  name === CUSTOM_CLIENT ? customClient(request, clients) : clients.find(name)

function customClient({ headers }: FastifyRequest, clients: Clients): Client {
  const { [HEADER.projectUrl]: url, [HEADER.projectKey]: key } = headers
  if (typeof url === 'string' && url !== '' && typeof key === 'string' && key !== '')
    return clients.custom(url, key)
  const missing = [HEADER.projectUrl, HEADER.projectKey].filter((name) => (headers[name] ?? '') === '')
  throw fail('missing_project_header', {
    message: `Client ${CUSTOM_CLIENT} needs ${missing.join(' and ')}`,
    details: { missing_header: missing[0], missing_headers: missing },
  })
}
