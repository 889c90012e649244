import type { Html } from '../html.ts'
import { html } from '../html.ts'

/** A mail as a person reads it. */
export type ReadMail = {
  readonly to: string
  readonly from: string
  readonly subject: string
  /** ISO 8601; empty without a date. */
  readonly date: string
  readonly text: string
  /** The source of the part in HTML, if there is one. */
  readonly html: string | undefined
}

/** Reads a message (RFC 5322, MIME) of the outbox. */
export async function readMessage(message: string): Promise<ReadMail> {
  const { default: PostalMime } = await import('postal-mime')
  const { to = [], from, subject = '', date = '', text = '', html } = await PostalMime.parse(message)
  return {
    to: to.map(({ address = '' }) => address).join(', '),
    from: from?.address ?? '',
    subject,
    date,
    text: text.trim(),
    html,
  }
}

/** The text with its links as links. */
export const linkedText = (text: string): readonly Html[] =>
  text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
