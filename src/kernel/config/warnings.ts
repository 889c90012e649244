import type { Config } from './config.ts'
import { readSmtpUrl } from './smtp-url.ts'

/** What is allowed and costs something: the start and the doctor say it, with the way out. */
export function warningsOf(config: Config): readonly string[] {
  return [
    ...mailWarnings(config),
    ...proxyWarnings(config),
    ...linkWarnings(config),
    ...clientWarnings(config),
  ]
}

/** The service itself speaks no TLS: where browsers use https there is a proxy. */
export const proxyWarnings = ({ server, rate_limits: { enabled } }: Config): readonly string[] =>
  enabled && server.public_url?.startsWith('https:') === true && server.trusted_proxies.length === 0
    ? [
        'server.trusted_proxies is empty and server.public_url is https: all callers have the address of the proxy, and share one rate limit. Name the proxy there.',
      ]
    : []

export function mailWarnings({ production, mail }: Config): readonly string[] {
  if (mail.transport === 'outbox')
    return production
      ? ['Mail stays in the outbox and reaches nobody: set mail.transport to smtp, and mail.smtp_url.']
      : []
  const server = readSmtpUrl(mail.smtp_url ?? '')
  if (server === undefined || server.isLoopback) return []
  return [
    ...(server.isEncrypted
      ? []
      : [
          'mail.smtp_url has ?tls=none: logins and one-time links can be read on the way. Use smtps:// or STARTTLS.',
        ]),
    ...(server.isVerified
      ? []
      : [
          'mail.smtp_url does not check the certificate of the mail server, so another one can take its place.',
        ]),
  ]
}

const linkWarnings = ({ auth: { email } }: Config): readonly string[] =>
  email.direct_links
    ? [
        'auth.email.direct_links mails links that act when they are opened: a mail scanner that opens every link uses them up, and verifies addresses in place of their owners.',
      ]
    : []

const clientWarnings = ({ gateway: { unsafe_clients: names } }: Config): readonly string[] =>
  names.length === 0
    ? []
    : [`gateway.unsafe_clients lets roles with rights over the whole server be clients: ${names.join(', ')}.`]
