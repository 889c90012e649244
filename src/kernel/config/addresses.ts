import { BlockList, isIP } from 'node:net'
import { type Form, textForm } from './forms.ts'
import { readScyllaUrl } from './scylla-url.ts'
import { readSmtpUrl } from './smtp-url.ts'

/** Scheme, host and port of http or https, nothing else; kept as browsers write an Origin. */
export const originForm: Form<string> = {
  name: 'origin',
  allowed: 'an http or https address without path, query or user, like https://app.example.com',
  parse: (text) => {
    const url = URL.parse(text)
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
    // URL accepts `https://*.example`, which no browser sends: the wildcard would have no effect.
    const isHost = /^[a-z0-9.-]+$|^\[/.test(url.hostname)
    return isHost && url.href === `${url.origin}/` && !/[?#]/.test(text) ? url.origin : undefined
  },
  write: (value) => value,
}

/** The origin of a page, or of an Android app (`android:apk-key-hash:`): SHA-256 of its signing certificate, in base64url. */
export const passkeyOriginForm: Form<string> = {
  ...originForm,
  allowed: `${originForm.allowed}, or android:apk-key-hash:…`,
  parse: (text) => (/^android:apk-key-hash:[A-Za-z0-9_-]{43}$/.test(text) ? text : originForm.parse(text)),
}

/** A page or image that a browser opens. */
export const webUrlForm: Form<string> = {
  name: 'web address',
  allowed: 'an http or https address without user, like https://app.example.com/verify',
  parse: (text) => {
    const url = URL.parse(text.trim())
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
    return url.username === '' && url.password === '' ? url.href : undefined
  },
  write: (value) => value,
}

/** The address of another installation, with credentials where it requires them. */
export const mirrorUrlForm: Form<string> = {
  name: 'web address',
  allowed: 'an http or https address like https://eu.example.com',
  parse: (text) => {
    const url = URL.parse(text.trim())
    if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
    return /%(?![\da-f]{2})/i.test(url.username + url.password) ? undefined : url.href
  },
  write: (value) => value,
}

export const serviceUrlForm = textForm(
  'service URL',
  /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/,
  'an http or https address without query and user, like https://api.example.com/range',
)

/** An address or a CIDR block, of either family. */
export const networkForm: Form<string> = {
  name: 'network',
  allowed: 'an address or CIDR block like 10.0.0.0/8, 192.168.1.7, fd00::/8',
  parse: (text) => (parseNetwork(text.trim()) ? text.trim() : undefined),
  write: (value) => value,
}

/** The networks of `server.trusted_proxies` or `outbound.allow_networks`, ready for checks. */
export function createBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of networks) {
    const network = parseNetwork(text)
    if (!network) throw new TypeError(`not a network: ${text}`)
    list.addSubnet(network.address, network.prefix, network.family)
  }
  return list
}

function parseNetwork(text: string) {
  const [, address = '', digits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  if (family === 0) return undefined
  const longest = family === 4 ? 32 : 128
  const prefix = digits === undefined ? longest : Number(digits)
  return prefix > longest ? undefined : ({ address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' } as const)
}

export const hostForm: Form<string> = {
  name: 'host',
  allowed: 'an address or host name, like 127.0.0.1, ::, localhost',
  parse: (text) => {
    const host = text.trim()
    return isIP(host) || /^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/.test(host) ? host : undefined
  },
  write: (value) => value,
}

/** A host as URLs write it. */
export const domainForm: Form<string> = {
  ...hostForm,
  name: 'domain',
  allowed: 'a domain, like example.com',
  parse: (text) => hostForm.parse(text)?.toLowerCase(),
}

/** Hosts that requests may name. The port is written unless it is the default one. */
export const hostPatternForm: Form<string> = {
  name: 'host pattern',
  allowed: 'a host like db.example.com, db.example.com:8443, *.example.com (one label)',
  parse: (text) => {
    const pattern = text.trim().toLowerCase()
    return /^(\*\.)?[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*(:\d{1,5})?$/.test(pattern) ? pattern : undefined
  },
  write: (value) => value,
}

/** `host` is that of a URL, with its port. */
export function hostFits(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host
  const label = host.slice(0, -(pattern.length - 1))
  return host.endsWith(pattern.slice(1)) && /^[a-z0-9-]+$/.test(label)
}

const ENCODED = 'with @ / ? # : in the password percent-encoded'

export const databaseUrlForm: Form<string> = {
  name: 'Postgres URL',
  allowed: `a URL like postgres://user:password@host:5432/database, ${ENCODED}`,
  parse: (text) => serverUrl(text, ['postgres:', 'postgresql:']),
  write: (value) => value,
}

// gateway.md 12: host names only. These parameters would give access to sockets, files or server options.
const UNSAFE_PARAMETERS =
  /^(options|host|hostaddr|service|passfile|sslcert|sslkey|sslrootcert|sslcrl|sslpassword)$/i

type ClientUrlForm = Form<string> & {
  /** For a caller who registers a client; without an example, which would look like a leaked address. */
  readonly advice: string
  /** The uses that only some drivers support. */
  readonly takes: readonly ClientUse[]
}

/** The client of the quick start, which needs no URL; the settings of these names; the client that keeps log and audit tables; backups by pg_dump. */
type ClientUse = 'built_in' | 'row_level_security' | 'sql_role' | 'direct_url' | 'logging' | 'backup'

/** The form of a client's URL, by driver; also the list of all drivers. `drivers/index.ts` creates them. */
export const clientUrlForms = {
  postgresql: {
    ...databaseUrlForm,
    allowed: `${databaseUrlForm.allowed}, without options, socket or file parameters`,
    parse: (text) => {
      const url = URL.parse(databaseUrlForm.parse(text) ?? '')
      if (!url || url.hostname === '' || /%2f/i.test(url.hostname)) return undefined
      return [...url.searchParams.keys()].some((key) => UNSAFE_PARAMETERS.test(key)) ? undefined : text.trim()
    },
    advice:
      'Use a Postgres URL with a host name, without options, socket or file parameters, with @ / ? # : in the password percent-encoded',
    takes: ['built_in', 'row_level_security', 'sql_role', 'direct_url', 'logging', 'backup'],
  },
  supabase: {
    name: 'Supabase URL',
    allowed:
      'a URL like https://:KEY@project.supabase.co, with the key as its password, without user and query',
    parse: (text) => {
      const url = URL.parse(text.trim())
      if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || /[?#\s]/.test(text.trim()))
        return undefined
      // The key is sent in a header.
      return /^([\w.~!$&'()*+,;=:-]|%[2-7][\dA-F])*$/i.test(url.password) ? text.trim() : undefined
    },
    write: (value) => value,
    advice:
      'Use an https URL with the key as its password, without user, query or fragment: https://:KEY@HOST',
    takes: [],
  },
  scylladb: {
    name: 'ScyllaDB URL',
    allowed: `a URL like scylladb://user:password@host1,host2:9042/keyspace?dc=datacenter1&tls=true, ${ENCODED}`,
    parse: (text) => (readScyllaUrl(text) ? text.trim() : undefined),
    write: (value) => value,
    advice:
      'Use a scylladb URL with hosts and keyspace, no parameters but dc and tls, with @ / ? # : in the password percent-encoded',
    takes: [],
  },
} as const satisfies Record<string, ClientUrlForm>

export type DriverName = keyof typeof clientUrlForms
export const DRIVER_NAMES = Object.keys(clientUrlForms) as DriverName[]
export const isDriverName = (text: string): text is DriverName => Object.hasOwn(clientUrlForms, text)

/** Whether clients of this driver can be used so. */
export function takes(name: DriverName, use: ClientUse): boolean {
  const uses: readonly ClientUse[] = clientUrlForms[name].takes
  return uses.includes(use)
}

/** The drivers whose clients can be used so, as a sentence names them. */
export const driversTaking = (use: ClientUse): string =>
  DRIVER_NAMES.filter((name) => takes(name, use)).join(' or ')

/** Any of these URLs; `rules.ts` checks the form of the client's driver. */
export const clientUrlForm: Form<string> = {
  name: 'database URL',
  allowed: databaseUrlForm.allowed,
  parse: (text) => (URL.canParse(text.trim()) ? text.trim() : undefined),
  write: (value) => value,
}

export const smtpUrlForm: Form<string> = {
  name: 'SMTP URL',
  allowed: `a URL like smtps://user:password@mail.example.com:465, or smtp:// with STARTTLS (?tls=none for a server without), ${ENCODED}`,
  parse: (text) => {
    const url = serverUrl(text, ['smtp:', 'smtps:'])
    return url && readSmtpUrl(url) ? url : undefined
  },
  write: (value) => value,
}

/**
 * The text itself, when it is a URL of one of these schemes. An `@` or `#` after the host means that the password is
 * not encoded: half of it would be in a part of the URL that is not masked.
 */
function serverUrl(text: string, protocols: readonly string[]): string | undefined {
  const url = URL.parse(text.trim())
  if (!url || !protocols.includes(url.protocol)) return undefined
  return /[@#]/.test(`${url.pathname}${url.search}${url.hash}`) ? undefined : text.trim()
}
