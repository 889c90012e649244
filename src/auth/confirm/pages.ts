import type { TicketPurpose } from '#identity/tickets.ts'
import type { Failure } from '#kernel/errors.ts'
import { type Html, html } from '#kernel/html.ts'
import type { Page } from '#kernel/http/page.ts'
import { PASSWORD_POLICY_FAILURES } from '../errors.ts'
import type { Done, Field, Form, LinkPage, OpenLink, View } from '../mail-flow.ts'
import { say, type TextName } from '../pages/texts.ts'

/** Hidden fields of the form. */
export type Sent = { readonly token: string; readonly callbackURL: string | undefined }

/** Values for the placeholders of texts. */
type Placeholders = Readonly<Record<string, string>>

export function placeholdersOf({
  user,
  ticket: { address, payload },
}: OpenLink<TicketPurpose>): Placeholders {
  const newEmail = 'newEmail' in payload ? payload.newEmail : address
  return { email: user?.email ?? address, newEmail }
}

/** The page with its forms, and the failure of the last attempt. */
export function viewPage(view: View, values: Placeholders, sent: Sent, failure?: Failure): Page {
  const { title, says, forms } = view
  return {
    title: say(title),
    content: [
      ...says.map((name) => paragraph(name, values)),
      ...(failure === undefined ? [] : [html`<p class="bad" role="alert">${failure.message}.</p>`]),
      ...forms.map((form) => formHtml(form, values, sent, isAbout(failure, form))),
    ],
    form: { leadsTo: sent.callbackURL },
  }
}

export function donePage({ title, says }: Done, values: Placeholders): Page {
  return { title: say(title), content: [paragraph(says, values)] }
}

/** For a link that was used, replaced or truncated, or has expired: says so, and what to do next. */
export function badLinkPage({ askAgain }: LinkPage, isExpired: boolean, callbackURL?: string): Page {
  return {
    title: say(isExpired ? 'expiredTitle' : 'badLinkTitle'),
    content: [
      paragraph(isExpired ? 'expiredSays' : 'badLinkSays'),
      paragraph(askAgain),
      ...(callbackURL === undefined ? [] : [html`<p><a href="${callbackURL}">${say('goOn')}</a></p>`]),
    ],
  }
}

const paragraph = (name: TextName, values: Placeholders = {}): Html => html`<p>${say(name, values)}</p>`

/** The password policy refused the new password of this form. */
const isAbout = (failure: Failure | undefined, { fields }: Form): boolean =>
  failure !== undefined && PASSWORD_POLICY_FAILURES.includes(failure.code) && fields.includes('newPassword')

function formHtml(
  { says, fields, button, folded }: Form,
  values: Placeholders,
  sent: Sent,
  isOpen: boolean,
): Html {
  const form = html`<form method="post">
${hidden('token', sent.token)}
${sent.callbackURL === undefined ? undefined : hidden('callbackURL', sent.callbackURL)}
${fields.length === 0 ? undefined : html`<input type="hidden" autocomplete="username" value="${values.email}">`}
${fields.map(input)}
<button>${say(button)}</button>
</form>`
  if (folded === undefined) return form
  return html`<details${isOpen ? ' open' : ''}>
<summary>${say(folded)}</summary>
${says === undefined ? undefined : paragraph(says, values)}
${form}
</details>`
}

const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`

const AUTOCOMPLETE: Readonly<Record<Field, string>> = {
  password: 'current-password',
  newPassword: 'new-password',
}

const input = (field: Field): Html => html`<label for="${field}">${say(field)}</label>
<input id="${field}" name="${field}" type="password" autocomplete="${AUTOCOMPLETE[field]}" maxlength="1024" required>`
