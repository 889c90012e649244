import type { Config } from './config.ts'
import { issuerWarnings } from './issuer-warnings.ts'
import { isDomain, originFault, passkeySite } from './passkey-site.ts'
import { readSmtpUrl } from './smtp-url.ts'

/** Warnings of the start and the doctor about settings that are allowed and risky, with the remedy. */
export function warningsOf(config: Config): readonly string[] {
  return [
    ...mailWarnings(config),
    ...proxyWarnings(config),
    ...linkWarnings(config),
    ...codeWarnings(config),
    ...clientWarnings(config),
    ...fieldWarnings(config),
    ...issuerWarnings(config),
    ...(usesPasskeys(config) ? passkeyWarnings(config) : []),
  ]
}

/** The service itself has no TLS, so there is a proxy when browsers use https. */
export const proxyWarnings = ({ server, rate_limits: { enabled } }: Config): readonly string[] =>
  enabled && server.public_url?.startsWith('https:') === true && server.trusted_proxies.length === 0
    ? [
        'server.trusted_proxies is empty and server.public_url is https: all callers have the address of the proxy and share one rate limit. Add the proxy to server.trusted_proxies.',
      ]
    : []

export function mailWarnings({ production, mail }: Config): readonly string[] {
  if (mail.transport === 'outbox')
    return production
      ? ['Mail stays in the outbox and is not delivered: set mail.transport to smtp, and mail.smtp_url.']
      : []
  const server = readSmtpUrl(mail.smtp_url ?? '')
  if (server === undefined || server.isLoopback) return []
  return [
    ...(server.isEncrypted
      ? []
      : [
          'mail.smtp_url has ?tls=none: logins and one-time links can be read on the network. Use smtps:// or STARTTLS.',
        ]),
    ...(server.isVerified
      ? []
      : [
          'mail.smtp_url does not check the certificate of the mail server, so another server can impersonate it.',
        ]),
  ]
}

const linkWarnings = ({ auth: { email } }: Config): readonly string[] =>
  email.direct_links
    ? [
        'auth.email.direct_links mails links that act when they are opened: mail scanners that open every link use them up, and verify addresses that are not theirs.',
      ]
    : []

/** Links have no tries that a stranger could use up (decision 65). */
const codeWarnings = ({ auth: { email_otp, magic_link } }: Config): readonly string[] =>
  email_otp.enabled && !magic_link.enabled
    ? [
        'auth.email_otp is on and auth.magic_link is off: strangers who type wrong codes (auth.email_otp.max_wrong_codes) keep an address from signing in by mail on a new device for a day. Turn on auth.magic_link: its mail then has a link too, which works all the same.',
      ]
    : []

const clientWarnings = ({ gateway: { unsafe_clients: names } }: Config): readonly string[] =>
  names.length === 0
    ? []
    : [`gateway.unsafe_clients lets roles with rights over the whole server be clients: ${names.join(', ')}.`]

/** A provider cannot ask a new user for a field. */
function fieldWarnings({ auth: { user, social } }: Config): readonly string[] {
  const hasProvider = social.sign_up !== 'never' && Object.keys(social.providers).length > 0
  return Object.entries(user.fields)
    .filter(([, { required, default: otherwise }]) => hasProvider && required && otherwise === undefined)
    .map(
      ([name]) =>
        `auth.user.fields.${name} is required and has no default: nobody can sign up by a provider (auth.social).`,
    )
}

/** Whether passkeys are wanted, as far as the configuration shows it. */
export const usesPasskeys = ({ auth: { passkey } }: Config): boolean =>
  passkey.rp_id !== undefined || passkey.origins.length > 0 || passkey.require_user_verification

/** Reasons why no browser makes or uses a passkey (auth.md 8). */
export function passkeyWarnings(config: Config): readonly string[] {
  const { rpId, origins } = passkeySite(config, config.server.public_url ?? 'http://localhost')
  if (!isDomain(rpId))
    return [
      `Passkeys are off: they need a domain, and ${config.auth.passkey.rp_id === undefined ? 'server.public_url has' : 'auth.passkey.rp_id is'} an IP address.`,
    ]
  return origins.flatMap((origin) => {
    const fault = originFault(rpId, origin)
    return fault === undefined ? [] : [`Passkeys do not work at ${origin}: ${FAULTS[fault](rpId)}.`]
  })
}

const FAULTS = {
  elsewhere: (rpId: string) => `its host is neither ${rpId} (auth.passkey.rp_id) nor below it`,
  insecure: () => 'browsers use them only with https and on localhost',
}
