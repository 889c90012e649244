import { escapeHtml } from '../html.ts'
import type { Mail } from './mail.ts'

type Message = {
  readonly to: string
  readonly subject: string
  /** Plain text; the first one is the greeting. */
  readonly paragraphs: readonly string[]
  /** The action: a button in HTML, a line of its own in text, before the last paragraph. */
  readonly action?: { readonly label: string; readonly url: string }
}

/** A mail with the same content in text and HTML. */
export function composeMail({ to, subject, paragraphs, action }: Message): Mail {
  const last = paragraphs.at(-1) ?? ''
  const before = paragraphs.slice(0, -1)
  const text = [...before, ...(action === undefined ? [] : [`${action.label}:\n${action.url}`]), last].join(
    '\n\n',
  )
  const button =
    action === undefined
      ? []
      : [`<p><a href="${escapeHtml(action.url)}" style="${BUTTON}">${escapeHtml(action.label)}</a></p>`]
  const html = [...before.map(paragraph), ...button, paragraph(last)].join('\n')
  return {
    to,
    subject,
    text: `${text}\n`,
    html: `<!doctype html>\n<html lang="en"><body style="${BODY}">\n${html}\n</body></html>\n`,
  }
}

const BODY =
  'font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 34em; margin: 2em auto; padding: 0 1em'
const BUTTON =
  'display: inline-block; padding: .6em 1.2em; border-radius: .4em; background: #1d4ed8; color: #fff; text-decoration: none'

const paragraph = (text: string): string => `<p>${escapeHtml(text)}</p>`
