import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import type { Failure } from '#kernel/errors.ts'
import { type Html, html } from '#kernel/html.ts'
import type { Page } from '#kernel/http/page.ts'
import { PASSWORD_POLICY_FAILURES } from '../errors.ts'
import type { Done, Field, Form, LinkPage, OpenLink, View } from '../mailing/flow.ts'
import { pageText, type TextName } from '../pages/texts.ts'

/** Hidden fields of the form. */
export type Sent = { readonly token: string; readonly callbackURL: string | undefined }

/** Values for the placeholders of texts. */
type Placeholders = Readonly<Record<string, string>>

export function placeholdersOf({
  user,
  ticket: { address, payload },
}: OpenLink<MailedPurpose>): Placeholders {
  const newEmail = 'newEmail' in payload ? payload.newEmail : address
  return { email: user?.email ?? address, newEmail }
}

/** The page with its forms, and the failure of the last attempt. */
export function viewPage(view: View, values: Placeholders, sent: Sent, failure?: Failure): Page {
  const { title, paragraphs, forms, leadsTo = sent.callbackURL } = view
  return {
    title: pageText(title),
    content: [
      ...paragraphs.map((name) => paragraph(name, values)),
      ...(failure === undefined ? [] : [html`<p class="bad" role="alert">${failure.message}.</p>`]),
      ...forms.map((form) => formHtml(form, values, sent, isAbout(failure, form))),
    ],
    form: { leadsTo },
  }
}

export function donePage({ title, text }: Done, values: Placeholders): Page {
  return { title: pageText(title), content: [paragraph(text, values)] }
}

/** For a link that was used, replaced or truncated, or has expired: says so, and what to do next. */
export function badLinkPage({ askAgain }: LinkPage, isExpired: boolean, callbackURL?: string): Page {
  return {
    title: pageText(isExpired ? 'expiredTitle' : 'badLinkTitle'),
    content: [
      paragraph(isExpired ? 'expiredText' : 'badLinkText'),
      paragraph(askAgain),
      ...(callbackURL === undefined
        ? []
        : [html`<p><a href="${callbackURL}">${pageText('continueToApplication')}</a></p>`]),
    ],
  }
}

const paragraph = (name: TextName, values: Placeholders = {}): Html => html`<p>${pageText(name, values)}</p>`

/** The password policy refused the new password of this form. */
const isAbout = (failure: Failure | undefined, { fields }: Form): boolean =>
  failure !== undefined && PASSWORD_POLICY_FAILURES.includes(failure.code) && fields.includes('newPassword')

function formHtml(
  { text, fields, button, folded }: Form,
  values: Placeholders,
  sent: Sent,
  isOpen: boolean,
): Html {
  const form = html`<form method="post">
${hidden('token', sent.token)}
${sent.callbackURL === undefined ? undefined : hidden('callbackURL', sent.callbackURL)}
${fields.length === 0 ? undefined : html`<input type="hidden" autocomplete="username" value="${values.email}">`}
${fields.map(input)}
<button>${pageText(button)}</button>
</form>`
  if (folded === undefined) return form
  return html`<details${isOpen ? ' open' : ''}>
<summary>${pageText(folded)}</summary>
${text === undefined ? undefined : paragraph(text, values)}
${form}
</details>`
}

const hidden = (name: string, value: string): Html =>
  html`<input type="hidden" name="${name}" value="${value}">`

const AUTOCOMPLETE: Readonly<Record<Field, string>> = {
  password: 'current-password',
  newPassword: 'new-password',
}

const input = (field: Field): Html => html`<label for="${field}">${pageText(field)}</label>
<input id="${field}" name="${field}" type="password" autocomplete="${AUTOCOMPLETE[field]}" maxlength="1024" required>`
