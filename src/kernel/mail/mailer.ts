import type { Kernel } from '../kernel.ts'
import type { Mail } from './mail.ts'
import { Refused, type Transport } from './transports.ts'

export type { Mail }

/**
 * Puts a mail into the queue, in the transaction that caused it. Sealed, because it may carry a one-time link and the
 * database keeps no token in clear.
 */
export async function sendMail(kernel: Kernel, mail: Mail): Promise<void> {
  await kernel.jobs.enqueue(kernel.db, 'send-mail', {
    mail: kernel.secrets.seal('mail', JSON.stringify(mail)),
  })
}

/**
 * The queue's side: opens the mail and hands it to the transport; throwing means another try later. One whose recipient does not
 * exist is dropped, since tries without end spoil the name of the sender.
 */
export async function deliverMail(kernel: Kernel, transport: Transport, sealed: string): Promise<void> {
  const opened = kernel.secrets.open('mail', sealed)
  if (opened === undefined) throw new Error('a queued mail was sealed under another SERVICE_SECRET')
  try {
    // What `sendMail` wrote.
    await transport.send(JSON.parse(opened) as Mail)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    // Without the error: the server's words name the address.
    kernel.log.warn({ event: 'mail_refused' }, 'the mail server knows no such recipient; the mail is dropped')
  }
}
