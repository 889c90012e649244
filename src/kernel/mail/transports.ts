import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { readSmtpUrl } from '../config/smtp-url.ts'
import { type Random, uuidv7 } from '../random.ts'
import type { Mail } from './mail.ts'

export type Transport = {
  /** Throws `Refused` when the server will never take it, and anything else when another try makes sense. */
  send(mail: Mail): Promise<void>
  /** Ends every connection, also in the middle of a mail. */
  close(): void
}

/** The mail server says that there is no such recipient. */
export class Refused extends Error {}

export function createMailTransport(config: Config, now: Clock, random: Random): Transport {
  return config.mail.transport === 'smtp'
    ? createSmtpTransport(config)
    : createOutboxTransport(config, now, random)
}

/** Loaded with the first mail: the start need not wait for it. */
const nodemailer = () => import('nodemailer')

/** Milliseconds. `socket`: in which a server that is connected says nothing; `mail`: for a mail from beginning to end. */
export type SmtpTimes = {
  readonly connect: number
  readonly greeting: number
  readonly socket: number
  readonly idle: number
  readonly mail: number
}

const TIMES: SmtpTimes = { connect: 10_000, greeting: 10_000, socket: 20_000, idle: 10_000, mail: 60_000 }

/** Connections to the mail server that a process keeps at most; as many mails go out at once (jobs.ts). */
export const MAIL_CONNECTIONS = 5

/** Keeps its connections for the next mail. Each ends by time-outs of ours, so that one that hangs holds up no other mail. */
export function createSmtpTransport({ mail: settings }: Config, times: SmtpTimes = TIMES): Transport {
  let pool: ReturnType<typeof openPool> | undefined
  return {
    async send(mail) {
      pool ??= openPool(settings, times)
      const transporter = await pool
      const signal = AbortSignal.timeout(times.mail)
      await transporter.sendMail({ ...mail, signal }).catch((error: unknown) => {
        throw isUnknownRecipient(error) ? new Refused('no such recipient', { cause: error }) : error
      })
    },
    close() {
      pool?.then(({ transporter }) => transporter.close?.({ force: true })).catch(() => {})
    },
  }
}

async function openPool({ smtp_url, from }: Config['mail'], times: SmtpTimes) {
  const { createTransport } = await nodemailer()
  const options = {
    url: readSmtpUrl(smtp_url ?? '')?.url,
    pool: true as const,
    maxConnections: MAIL_CONNECTIONS,
    // The queue tries again; the pool does so once, when a server has closed a connection that waited.
    maxRequeues: 1,
    dnsTimeout: times.connect,
    connectionTimeout: times.connect,
    greetingTimeout: times.greeting,
    socketTimeout: times.socket,
    idleTimeout: times.idle,
  }
  return createTransport(options, { from })
}

/**
 * RFC 3463 section 3.2: the address is wrong and stays so. Other refusals, also 550 without such a code, may be about us (a wrong
 * password, no relaying, a full mailbox), and another try after some time makes sense.
 */
function isUnknownRecipient(error: unknown): boolean {
  const { command, response } = error as { command?: unknown; response?: unknown } // whatever was thrown
  return (
    command === 'RCPT TO' && typeof response === 'string' && /^5\d\d[ -]5\.1\.(1|2|3|6|10)\b/.test(response)
  )
}

/** Writes each mail as an `.eml` file that only the service's user can read; the name sorts by time. */
function createOutboxTransport(config: Config, now: Clock, random: Random): Transport {
  const folder = outboxFolder(config)
  return {
    async send(mail) {
      const { createTransport } = await nodemailer()
      const composer = createTransport({ streamTransport: true, buffer: true }, { from: config.mail.from })
      const { message } = await composer.sendMail(mail)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFile(path.join(folder, `${uuidv7(now(), random)}.eml`), message as Buffer, { mode: 0o600 }) // `buffer: true`
    },
    close() {},
  }
}

/** Takes what is older than `mail.outbox_keep`: a mail may carry a one-time link, and always tells who has an account. */
export async function pruneOutbox(config: Config, now: Date): Promise<void> {
  const oldest = now.getTime() - config.mail.outbox_keep
  const names = (await outboxNames(config)).filter((name) => timeOf(name) < oldest)
  for (const name of names) await rm(path.join(outboxFolder(config), name), { force: true })
}

/** Of a file named by a UUIDv7 (RFC 9562 section 5.7). What has another name was not put there by us, and stays. */
const timeOf = (name: string): number =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\.eml$/.test(name)
    ? Number.parseInt(name.replace('-', '').slice(0, 12), 16)
    : Number.NaN

export const outboxFolder = (config: Config): string => path.join(config.server.data_dir, 'outbox')

/** The outbox, oldest first: file name without `.eml`, and the message. */
export async function readOutbox(config: Config): Promise<readonly { id: string; message: string }[]> {
  const folder = outboxFolder(config)
  return Promise.all(
    (await outboxNames(config)).map(async (name) => ({
      id: path.parse(name).name,
      message: await readFile(path.join(folder, name), 'utf8'),
    })),
  )
}

async function outboxNames(config: Config): Promise<readonly string[]> {
  const entries = await readdir(outboxFolder(config), { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.eml'))
    .map(({ name }) => name)
    .sort()
}
