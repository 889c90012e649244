import { isIP } from 'node:net'

/** The parts of `scylladb://user:password@host1,host2:9042/keyspace?dc=datacenter1&tls=true`. */
export type ScyllaUrl = {
  readonly hosts: readonly string[]
  readonly port: number
  readonly user: string | undefined
  readonly password: string
  readonly keyspace: string
  /** The data centre that statements are sent to. */
  readonly dc: string | undefined
  readonly tls: boolean
}

const URL_PATTERN =
  /^(?:scylladb|scylla|cassandra):\/\/(?:([^:@/?#]+):([^:@/?#]+)@)?([^:@/?#]+)(?::(\d{1,5}))?\/([A-Za-z][A-Za-z0-9_]{0,47})(?:\?([^#]*))?$/
const HOST = /^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/

/** Reads the URL of a client of ScyllaDB or Cassandra; undefined when it is not one. */
export function readScyllaUrl(text: string): ScyllaUrl | undefined {
  const [given, user, password = '', names = '', port = '9042', keyspace = '', query = ''] =
    URL_PATTERN.exec(text.trim()) ?? []
  const hosts = names.split(',')
  const parameters = parametersOf(query)
  if (given === undefined || parameters === undefined || isSystem(keyspace)) return undefined
  if (!hosts.every((name) => isIP(name) === 4 || HOST.test(name))) return undefined
  if (Number(port) < 1 || Number(port) > 65_535) return undefined
  const [name, secret] = [decoded(user), decoded(password)]
  if (secret === undefined || (user !== undefined && name === undefined)) return undefined
  return { hosts, port: Number(port), user: name, password: secret, keyspace, ...parameters }
}

/** Keyspaces of the server itself, which contain its roles and their hashes. */
export const isSystem = (keyspace: string): boolean => /^system(?:$|_)/i.test(keyspace)

function parametersOf(query: string): Pick<ScyllaUrl, 'dc' | 'tls'> | undefined {
  const given = new URLSearchParams(query)
  const known = { dc: given.get('dc'), tls: given.get('tls') ?? 'false' }
  if ([...given.keys()].some((name) => !Object.hasOwn(known, name))) return undefined
  if (given.getAll('dc').length > 1 || given.getAll('tls').length > 1) return undefined
  if (known.dc === '' || (known.tls !== 'true' && known.tls !== 'false')) return undefined
  return { dc: known.dc ?? undefined, tls: known.tls === 'true' }
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text)
  } catch {
    return undefined
  }
}
