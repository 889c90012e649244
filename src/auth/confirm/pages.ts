import type { TicketPurpose } from '#identity/tickets.ts'
import type { Failure } from '#kernel/errors.ts'
import { type Html, html } from '#kernel/html.ts'
import type { Page } from '#kernel/http/page.ts'
import { REFUSED_PASSWORD } from '../errors.ts'
import type { Done, Field, Form, LinkPage, OpenLink, View } from '../mail-flow.ts'
import { say, type TextName } from '../pages/texts.ts'

/** Hidden fields of the form. */
export type Sent = { readonly token: string; readonly callbackURL: string | undefined }

/** Values for the placeholders of texts. */
type Named = Readonly<Record<string, string>>

export function namedIn({ user, ticket: { address, payload } }: OpenLink<TicketPurpose>): Named {
  const newEmail = 'newEmail' in payload ? payload.newEmail : address
  return { email: user?.email ?? address, newEmail }
}

/** The page with its forms, and the failure of the last attempt. */
export function viewPage(view: View, named: Named, sent: Sent, failure?: Failure): Page {
  const { title, says, forms } = view
  return {
    title: say(title),
    content: [
      ...says.map((name) => paragraph(name, named)),
      ...(failure === undefined ? [] : [html`<p class="bad" role="alert">${failure.message}.</p>`]),
      ...forms.map((form) => written(form, named, sent, isAbout(failure, form))),
    ],
    form: { leadsTo: sent.callbackURL },
  }
}

export function donePage({ title, says }: Done, named: Named): Page {
  return { title: say(title), content: [paragraph(says, named)] }
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

const paragraph = (name: TextName, named: Named = {}): Html => html`<p>${say(name, named)}</p>`

/** The password policy refused the new password of this form. */
const isAbout = (failure: Failure | undefined, { fields }: Form): boolean =>
  failure !== undefined && REFUSED_PASSWORD.includes(failure.code) && fields.includes('newPassword')

function written({ says, fields, button, folded }: Form, named: Named, sent: Sent, isOpen: boolean): Html {
  const form = html`<form method="post">
${hidden('token', sent.token)}
${sent.callbackURL === undefined ? undefined : hidden('callbackURL', sent.callbackURL)}
${fields.length === 0 ? undefined : html`<input type="hidden" autocomplete="username" value="${named.email}">`}
${fields.map(input)}
<button>${say(button)}</button>
</form>`
  if (folded === undefined) return form
  return html`<details${isOpen ? ' open' : ''}>
<summary>${say(folded)}</summary>
${says === undefined ? undefined : paragraph(says, named)}
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
