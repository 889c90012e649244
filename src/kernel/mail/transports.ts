import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import { readSmtpUrl } from '../config/smtp-url.ts'
import { type Random, uuidv7 } from '../random.ts'
import type { Mail } from './mailer.ts'

export type Transport = { send(mail: Mail): Promise<void> }

export function mailTransport(config: Config, now: Clock, random: Random): Transport {
  return config.mail.transport === 'smtp' ? smtpTransport(config) : outboxTransport(config, now, random)
}

/** Loaded with the first mail: the start need not wait for it. */
const nodemailer = () => import('nodemailer')

function smtpTransport({ mail: settings }: Config): Transport {
  const server = readSmtpUrl(settings.smtp_url ?? '')
  return {
    async send(mail) {
      const { createTransport } = await nodemailer()
      const transporter = createTransport(server?.url, { from: settings.from })
      await transporter.sendMail(mail)
    },
  }
}

/** Writes each mail as an `.eml` file that only the service's user can read; the name sorts by time. */
function outboxTransport(config: Config, now: Clock, random: Random): Transport {
  const folder = outboxFolder(config)
  return {
    async send(mail) {
      const { createTransport } = await nodemailer()
      const composer = createTransport({ streamTransport: true, buffer: true }, { from: config.mail.from })
      const { message } = await composer.sendMail(mail)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFile(path.join(folder, `${uuidv7(now(), random)}.eml`), message as Buffer, { mode: 0o600 }) // `buffer: true`
    },
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
