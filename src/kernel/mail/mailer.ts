import type { Kernel } from '../kernel.ts'
import { uuidv7 } from '../random.ts'
import type { Mail } from './mail.ts'
import { deleteFromOutbox, Refused, type Transport } from './transports.ts'

export type { Mail }

/**
 * Enqueues a mail in the transaction that caused it. The mail is sealed, because it may contain a one-time link and the
 * database contains no token in clear. One to the domain `invalid`, which cannot exist (RFC 6761, 6.4), is dropped.
 */
export async function sendMail(kernel: Kernel, mail: Mail): Promise<void> {
  if (mail.to.endsWith('.invalid')) return
  const id = uuidv7(kernel.now(), kernel.random)
  const sealed = kernel.secrets.seal('mail', JSON.stringify(mail), id)
  const job = { mail: sealed, recipient: recipientTag(kernel, mail.to) }
  await kernel.jobs.enqueue(kernel.db, 'send-mail', job, id)
}

/** A tag that finds the mails to an address and does not show it. */
export const recipientTag = (
  { secrets }: Pick<Kernel, 'secrets'>,
  address: string,
  age?: 'previous',
): string => secrets.derive('mail-recipient', address, age)

/** Deletes the mails to an address: the queued ones in this transaction, those in the outbox after its commit. */
export async function forgetMails(kernel: Kernel, address: string): Promise<void> {
  const { config, jobs, db, log } = kernel
  await jobs.discard(db, [recipientTag(kernel, address), recipientTag(kernel, address, 'previous')])
  const forget = () =>
    deleteFromOutbox(config, address).catch((error: unknown) =>
      log.warn({ event: 'outbox_not_cleared', error }, 'mails to a deleted account stay in the outbox'),
    )
  if (config.mail.transport === 'outbox') kernel.afterCommit(() => void forget())
}

/**
 * The job: opens the mail and hands it to the transport. When it throws, the job is tried again. A mail whose recipient does not
 * exist is dropped, since further tries would harm the sender's reputation.
 */
export async function deliverMail(
  kernel: Kernel,
  transport: Transport,
  { id, sealed }: { readonly id: string; readonly sealed: string },
): Promise<void> {
  const opened = kernel.secrets.open('mail', sealed, id)
  if (opened === undefined) throw new Error('a queued mail was sealed under another SERVICE_SECRET')
  try {
    // Written by `sendMail`.
    await transport.send(JSON.parse(opened) as Mail)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    // Without the error, because the server's message names the address.
    kernel.log.warn({ event: 'mail_refused' }, 'the mail server knows no such recipient; the mail is dropped')
  }
}
