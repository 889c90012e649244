import { lookup } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { createSemaphore } from '../../semaphore.ts'

/** Finds the addresses of a host name, as `lookup` of node:dns does. */
export type Resolve = (
  hostname: string,
  options: { readonly all: true; readonly family?: number | 'IPv4' | 'IPv6' },
  callback: (error: Error | null, addresses: readonly Address[]) => void,
) => void

type Address = { readonly address: string; readonly family: number }
type Family = Parameters<Resolve>[1]['family']

/** Differs in tests. */
type Sources = { readonly hostsFile: string; readonly servers?: readonly string[]; readonly system: Resolve }

/** Elsewhere the system reads it. */
const HOSTS_FILE = '/etc/hosts'

/** Milliseconds for one question to one name server, and how often it is asked. */
const PATIENCE = { timeout: 2_000, maxTimeout: 2_000, tries: 2 }
/** Callers that wait for the system, and for how long, milliseconds. */
const LINE = {
  max: 20,
  patience: 5_000,
  refusal: () => new Error('too many host names are being looked up'),
}

/**
 * Looks up names that callers choose. The system's look-up (getaddrinfo) takes one of two threads of the process until the name server has
 * answered, or for ten seconds and longer if it is silent; while both are taken, the service itself finds no database and no mail server. So
 * the hosts file and the name servers are asked first, without a thread. Only a name that they do not know goes to the system, which may
 * have search domains and other sources, one at a time.
 */
export function createNameLookups({ hostsFile, servers, system }: Sources = ON_THIS_MACHINE): Resolve {
  const line = createSemaphore(1, LINE)

  async function find(hostname: string, family: Family): Promise<readonly Address[]> {
    const fits = (one: Address) => !family || `IPv${one.family}` === `IPv${String(family).replace('IPv', '')}`
    const local = (await hostsIn(hostsFile, hostname)).filter(fits)
    if (local.length > 0) return local
    const answered = (await askServers(hostname, servers)).filter(fits)
    return answered.length > 0 ? answered : askSystem(hostname, family)
  }

  async function askSystem(hostname: string, family: Family): Promise<readonly Address[]> {
    const options = { all: true, ...(family !== undefined && { family }) } as const
    return line.run(
      () =>
        new Promise<readonly Address[]>((resolve, reject) => {
          system(hostname, options, (error, found) => (error === null ? resolve(found) : reject(error)))
        }),
    )
  }

  return (hostname, { family }, callback) => {
    find(hostname, family).then(
      (found) => callback(null, found),
      (error: Error) => callback(error, []),
    )
  }
}

const ON_THIS_MACHINE: Sources = { hostsFile: HOSTS_FILE, system: lookup }

/** Error codes for an unknown name, with and without a name server. EBADNAME: no name server can be asked, as for `!`. */
const UNKNOWN = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'EBADNAME'])

/** Both families; none for an unknown name. Throws when the servers are silent or fail. */
async function askServers(hostname: string, servers: Sources['servers']): Promise<readonly Address[]> {
  // A new one each time: it reads which servers there are now.
  const resolver = new Resolver(PATIENCE)
  if (servers !== undefined) resolver.setServers(servers)
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const found = [...addressesOf(v4), ...addressesOf(v6)]
  const failure = [v4, v6].find((one) => one.status === 'rejected' && !UNKNOWN.has(one.reason.code))
  if (found.length === 0 && failure?.status === 'rejected') throw failure.reason
  return found
}

const addressesOf = (answer: PromiseSettledResult<readonly string[]>): readonly Address[] =>
  answer.status === 'rejected' ? [] : answer.value.map((address) => ({ address, family: isIP(address) }))

/** The addresses that the file of the operator has for a name. */
async function hostsIn(file: string, hostname: string): Promise<readonly Address[]> {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  const text = await readFile(file, 'utf8').catch(() => '')
  if (!text.toLowerCase().includes(name)) return []
  return text.split('\n').flatMap((line) => {
    const [facts = ''] = line.split('#', 1)
    const [address = '', ...names] = facts.split(/\s/).filter((word) => word !== '')
    const isNamed = isIP(address) !== 0 && names.some((one) => one.toLowerCase() === name)
    return isNamed ? [{ address, family: isIP(address) }] : []
  })
}
