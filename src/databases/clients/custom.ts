import { hash } from 'node:crypto'
import { type ConcurrencyLimit, createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import { createSupabaseDriver } from '#databases/drivers/supabase/driver.ts'
import { fail } from '#databases/failures.ts'
import { hostFits } from '#kernel/config/addresses.ts'
import type { Config } from '#kernel/config/config.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { type OutboundAnswer, OutboundRefused } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Client } from './client.ts'

/** The client whose project and key come with each request (gateway.md 2). */
export const CUSTOM_CLIENT = 'custom_supabase'

/** Throws a Failure when requests may not name this address. */
export type CustomClients = (address: string, key: string) => Client

/** Projects in the cache, so that their structure is not read again for each request. */
const MAX_PROJECTS = 20

export function createCustomClients(kernel: Kernel): CustomClients {
  const known = new Map<string, Client>()
  // Callers choose keys, so all projects together share the limits of one client.
  const shared = createConcurrencyLimit({
    places: CLIENT_LIMITS.max_connections,
    waiting: CLIENT_LIMITS.max_waiting,
    patience: CLIENT_LIMITS.connect_timeout,
  })
  return (address, key) => {
    const root = rootOf(kernel.config, address)
    if (!/^[\x21-\x7e]+$/.test(key)) throw refused('The key has characters that no key has')
    // The key is part of the cache key: only its holder gets what was read with it.
    const name = hash('sha256', `${root}\n${key}`)
    const client = known.get(name) ?? clientOf(kernel, shared, { root, key })
    known.delete(name)
    known.set(name, client)
    const [oldest] = known.size > MAX_PROJECTS ? known.keys() : []
    if (oldest !== undefined) known.delete(oldest)
    return client
  }
}

type Project = { readonly root: string; readonly key: string }

function clientOf(kernel: Kernel, shared: ConcurrencyLimit, project: Project): Client {
  const driver = createSupabaseDriver({
    ...project,
    shared,
    async send(url, request) {
      const answer = await kernel.outbound.send(url, request).catch(explainRefusal)
      if (isMovedToHttps(url, answer)) throw refused('It redirects to https: name it with https://')
      return answer
    },
    // One project cannot take all places.
    maxConnections: Math.ceil(CLIENT_LIMITS.max_connections / 2),
    maxWaiting: CLIENT_LIMITS.max_waiting,
    connectTimeout: CLIENT_LIMITS.connect_timeout,
    statementTimeout: CLIENT_LIMITS.statement_timeout,
    maxRows: kernel.config.gateway.max_rows,
    answerBytes: kernel.config.limits.answer,
    readOnly: false,
    // It has no connections of its own: the kernel has those of all outbound requests.
    close: async () => {},
  })
  return {
    name: CUSTOM_CLIENT,
    driver,
    source: 'config',
    isFrozen: false,
    rowLevelSecurity: undefined,
    isCached: false,
  }
}

function explainRefusal(error: unknown): never {
  if (error instanceof OutboundRefused)
    throw refused('Its host is in a network that is not reached for callers')
  if (error instanceof Error && 'code' in error && error.code === 'ENOTFOUND')
    throw refused('There is no such host')
  throw error
}

const isMovedToHttps = (url: string, { status, headers: { location } }: OutboundAnswer): boolean =>
  url.startsWith('http:') && status >= 300 && status < 400 && /^https:/i.test(String(location))

/**
 * The root of PostgREST at an address that a caller gives. The accepted form is unambiguous: no user, no percent sign, no backslash, no
 * letters beyond ASCII, no path but Supabase's own. The host of the parsed URL is compared.
 */
function rootOf({ gateway, outbound }: Config, address: string): string {
  const url = /^https?:\/\/[a-z0-9.:-]+(\/|\/rest\/v1\/?)?$/i.test(address) ? URL.parse(address) : null
  if (url === null) throw refused('It looks like https://project.supabase.co')
  if (url.protocol !== 'https:' && !outbound.allow_http) throw refused('Only https is allowed')
  // 2130706433 and 0x7f.1 become 127.0.0.1.
  const isAsWritten = address.toLowerCase().startsWith(`${url.protocol}//${url.host}`)
  const isAllowed = gateway.custom_supabase.allowed_hosts.some((pattern) => hostFits(pattern, url.host))
  if (!isAsWritten || !isAllowed)
    throw refused(
      'Its host is not one of those that the operator allows (gateway.custom_supabase.allowed_hosts)',
    )
  return `${url.origin}/rest/v1`
}

const refused = (hint: string) => fail('invalid_project', { hint })
