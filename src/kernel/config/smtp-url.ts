/** How a mail server is reached, as the URL says. */
export type SmtpUrl = {
  /** As nodemailer reads it. */
  readonly url: string
  /** Nothing is sent in the clear: TLS from the first byte, or STARTTLS before anything else. */
  readonly isEncrypted: boolean
  /** The server's certificate is checked. */
  readonly isVerified: boolean
  /** The connection does not leave this machine. */
  readonly isLoopback: boolean
}

/**
 * nodemailer's own switches for TLS; `?tls=none` is the one that the start warns of. A `service` is another server with
 * other TLS than the URL says.
 */
const SWITCHES = ['secure', 'ignoreTLS', 'opportunisticTLS', 'service']

/**
 * `smtp://` speaks plainly until STARTTLS. Whoever is on the way can take the offer of STARTTLS out, and would read logins
 * and one-time links, so it is required unless the server is on this machine or the URL says `?tls=none`. Undefined when
 * the URL says something else.
 */
export function readSmtpUrl(text: string): SmtpUrl | undefined {
  const url = URL.parse(text)
  if (url === null || url.hostname === '') return undefined
  const { searchParams: query } = url
  const tls = query.get('tls')
  const isImplicit = url.protocol === 'smtps:'
  const isKnown = tls === null || (tls === 'none' && !isImplicit && query.get('requireTLS') !== 'true')
  if (!isKnown || query.get('requireTLS') === 'false' || SWITCHES.some((name) => query.has(name)))
    return undefined
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname.toLowerCase())
  query.delete('tls')
  if (!isImplicit && !isLoopback && tls !== 'none') query.set('requireTLS', 'true')
  return {
    url: url.href,
    isEncrypted: isImplicit || query.get('requireTLS') === 'true',
    isVerified: query.get('tls.rejectUnauthorized') !== 'false',
    isLoopback,
  }
}
