import type { Config } from '../config/config.ts'
import { readSmtpUrl } from '../config/smtp-url.ts'

/** Time limits, milliseconds. A server may let strangers wait for its greeting. */
const TIMES = { dnsTimeout: 5_000, connectionTimeout: 5_000, greetingTimeout: 10_000, socketTimeout: 10_000 }

/** Why no mail can be handed to the server of `mail.smtp_url`, with what to do; undefined when one can. It connects and logs in. */
export async function mailServerProblem({ mail }: Pick<Config, 'mail'>): Promise<string | undefined> {
  const url = readSmtpUrl(mail.smtp_url ?? '')?.url
  if (mail.transport !== 'smtp' || url === undefined) return undefined
  const { createTransport } = await import('nodemailer')
  const transporter = createTransport({ url, ...TIMES })
  try {
    await transporter.verify()
    return undefined
  } catch (error) {
    return `mail.smtp_url: ${reasonOf(new URL(url), error)}`
  } finally {
    transporter.close()
  }
}

/** Without the server's own words, which may repeat a login. */
function reasonOf({ protocol, hostname, port }: URL, error: unknown): string {
  const { code = '', message = '' } = Object(error) as { code?: unknown; message?: unknown } // whatever was thrown
  const server = `${hostname}:${port || (protocol === 'smtps:' ? 465 : 587)}`
  const [, says] = REASONS.find(([pattern]) => pattern.test(`${code} ${message}`)) ?? []
  const [named = code || 'no answer'] = /\bE[A-Z]{4,20}\b/.exec(`${message} ${code}`) ?? []
  return (
    says?.(server) ??
    `${server} does not answer as a mail server does (${named}): start it, or check host, port and firewall`
  )
}

/** The first pattern that matches code and message of nodemailer's error. */
const REASONS: readonly (readonly [RegExp, (server: string) => string])[] = [
  [
    /^(EAUTH|ENOAUTH) /,
    (server) =>
      `${server} refuses the login: check user and password, with @ / ? # : in them percent-encoded`,
  ],
  [/^EDNS /, (server) => `the host of ${server} is not found: check its name, and the DNS`],
  [
    /^ETLS |SSL routines|certificate|altnames|STARTTLS/i,
    (server) =>
      `${server} has no TLS that can be trusted: check port and scheme, or name the authority of its certificate in NODE_EXTRA_CA_CERTS`,
  ],
]
