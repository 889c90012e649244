import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { readSmtpUrl } from '../config/smtp-url.ts'
import { openedOnce } from '../opened-once.ts'
import { type Random, uuidv7 } from '../random.ts'
import type { Mail } from './mail.ts'

export type Transport = {
  /** Throws `Refused` when the server will never accept the mail, and any other error when another try makes sense. */
  send(mail: Mail): Promise<void>
  /** Closes every connection, also during a mail. */
  close(): void
}

/** The mail server has no such recipient. */
export class Refused extends Error {}

export function createMailTransport(config: Config, now: Clock, random: Random): Transport {
  return config.mail.transport === 'smtp'
    ? createSmtpTransport(config)
    : createOutboxTransport(config, now, random)
}

/** Loaded with the first mail, to keep the start fast. */
const nodemailer = () => import('nodemailer')

/** Time limits, milliseconds. `socket`: silence of a connected server; `mail`: a whole mail. */
type SmtpTimes = {
  readonly connect: number
  readonly greeting: number
  readonly socket: number
  readonly idle: number
  readonly mail: number
}

const TIMES: SmtpTimes = { connect: 10_000, greeting: 10_000, socket: 20_000, idle: 10_000, mail: 60_000 }

/** Largest number of connections of a process to the mail server, and of concurrent mails (jobs.ts). */
export const MAIL_CONNECTIONS = 5

/** Reuses its connections. Each has our own time limits, so that a connection that hangs delays no other mail. */
export function createSmtpTransport({ mail: settings }: Config, times: SmtpTimes = TIMES): Transport {
  const pool = openedOnce(() => openPool(settings, times))
  return {
    async send(mail) {
      const transporter = await pool.get()
      const signal = AbortSignal.timeout(times.mail)
      await transporter.sendMail({ ...mail, signal }).catch((error: unknown) => {
        throw isUnknownRecipient(error) ? new Refused('no such recipient', { cause: error }) : error
      })
    },
    close() {
      pool
        .current()
        ?.then(({ transporter }) => transporter.close?.({ force: true }))
        .catch(() => {})
    },
  }
}

async function openPool({ smtp_url, from }: Config['mail'], times: SmtpTimes) {
  const { createTransport } = await nodemailer()
  const options = {
    url: readSmtpUrl(smtp_url ?? '')?.url,
    pool: true as const,
    maxConnections: MAIL_CONNECTIONS,
    // The queue retries; the pool retries once, when the server has closed an idle connection.
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
 * RFC 3463 section 3.2: the address is permanently invalid. Other refusals, also 550 without such a code, may have temporary or local
 * causes (a wrong password, no relaying, a full mailbox), so that a later try makes sense.
 */
function isUnknownRecipient(error: unknown): boolean {
  const { command, response } = error as { command?: unknown; response?: unknown } // whatever was thrown
  return (
    command === 'RCPT TO' && typeof response === 'string' && /^5\d\d[ -]5\.1\.(1|2|3|6|10)\b/.test(response)
  )
}

/** Writes each mail as an `.eml` file that only the service's user can read. The names sort by time. */
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

/** Deletes mails older than `mail.outbox_keep`: they may contain one-time links, and show who has an account. */
export async function pruneOutbox(config: Config, now: Date): Promise<void> {
  const oldest = now.getTime() - config.mail.outbox_keep
  const names = (await outboxNames(config)).filter((name) => timeOf(name) < oldest)
  for (const name of names) await rm(path.join(outboxFolder(config), name), { force: true })
}

/** Time in a file name that is a UUIDv7 (RFC 9562 section 5.7). Files with other names are not from the outbox, and stay. */
const timeOf = (name: string): number =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\.eml$/.test(name)
    ? Number.parseInt(name.replace('-', '').slice(0, 12), 16)
    : Number.NaN

/** Deletes the mails to this address. */
export async function deleteFromOutbox(config: Config, address: string): Promise<void> {
  const to = `to: ${address.toLowerCase()}`
  for (const { id, message } of await readOutbox(config)) {
    const [head = ''] = message.split(/\r?\n\r?\n/, 1)
    // A long line of a header is folded (RFC 5322 section 2.2.3).
    const lines = head
      .replace(/\r?\n(?=[ \t])/g, '')
      .toLowerCase()
      .split(/\r?\n/)
    if (lines.includes(to)) await rm(path.join(outboxFolder(config), `${id}.eml`), { force: true })
  }
}

export const outboxFolder = (config: Config): string => path.join(config.server.data_dir, 'outbox')

/** The mails of the outbox, oldest first: file name without `.eml`, and the message. */
export async function readOutbox(config: Config): Promise<readonly { id: string; message: string }[]> {
  const folder = outboxFolder(config)
  const mails = (await outboxNames(config)).map(async (name) => {
    const message = await readFile(path.join(folder, name), 'utf8').catch(unlessGone)
    return message === undefined ? [] : [{ id: path.parse(name).name, message }]
  })
  return (await Promise.all(mails)).flat()
}

/** A mail may be deleted while others are read. */
function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

async function outboxNames(config: Config): Promise<readonly string[]> {
  const entries = await readdir(outboxFolder(config), { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.eml'))
    .map(({ name }) => name)
    .sort()
}
