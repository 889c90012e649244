/** The connection to a mail server, read from its URL. */
type SmtpUrl = {
  /** In nodemailer's spelling. */
  readonly url: string
  /** TLS from the first byte, or STARTTLS before anything else. */
  readonly isEncrypted: boolean
  /** The server's certificate is checked. */
  readonly isVerified: boolean
  /** The connection does not leave this machine. */
  readonly isLoopback: boolean
}

/**
 * nodemailer's own switches for TLS are refused, because no warning at the start covers them; `?tls=none` is allowed. A `service`
 * is another server than the one in the URL, with other TLS settings.
 */
const SWITCHES = ['secure', 'ignoreTLS', 'opportunisticTLS', 'service']

/**
 * `smtp://` is plain text until STARTTLS. An attacker on the network can remove the offer of STARTTLS and would then read logins
 * and one-time links; so STARTTLS is required, unless the server is on this machine or the URL has `?tls=none`. Undefined when
 * the URL cannot be used.
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
