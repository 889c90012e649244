import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
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

export const outboxFolder = (config: Config): string => path.join(config.server.data_dir, 'outbox')

/** The outbox, oldest first: file name without `.eml`, and the message. */
export async function readOutbox(config: Config): Promise<readonly { id: string; message: string }[]> {
  const folder = outboxFolder(config)
  const names = await readdir(folder).catch(() => [])
  const mails = names.filter((name) => name.endsWith('.eml')).sort()
  return Promise.all(
    mails.map(async (name) => ({
      id: path.parse(name).name,
      message: await readFile(path.join(folder, name), 'utf8'),
    })),
  )
}
