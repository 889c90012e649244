import { call, facts } from '../api.js'
import { Fact, Failure, Link, Mark, Panel, Pending, Table, Title } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { may } from '../session.js'
import { Time, Value } from '../values.js'

/** @typedef {{ id: string, to: string, from: string, subject: string, date: string }} ListedMail */
/** @typedef {ListedMail & { text: string, html: string | null }} OutboxMail */

/** The mails of the outbox, in development; and how mails are sent. @param {import('../router.js').ViewProps} props */
export function View({ caller, rest }) {
  if (facts.mail && rest !== '') return html`<${Mail} key=${rest} id=${rest} />`
  return html`${facts.mail ? html`<${Outbox} />` : html`<${Title} title="Mail" />`}
    ${may(caller, ['operator:settings']) && html`<${Configured} />`}`
}

/** @type {readonly import('../controls.js').Column<ListedMail>[]} */
const COLUMNS = [
  { name: 'date', title: 'Sent', cell: ({ date }) => html`<${Time} at=${date === '' ? null : date} />` },
  { name: 'to', title: 'To', cell: ({ to }) => html`<${Value} value=${to} />` },
  {
    name: 'subject',
    title: 'Subject',
    cell: ({ id, subject }) =>
      html`<${Link} to=${`/mail/${id}`}><${Value} value=${subject === '' ? 'without a subject' : subject} /><//>`,
  },
]

/** @param {{ id: string }} mail */
const idOf = ({ id }) => id

function Outbox() {
  const { data, failure, isLoading, reload } = useLoad((signal) => call('/dev/mails', { signal }), [])
  return html`<${Title} title="Mail"><button type="button" onClick=${reload}>Read again</button><//>
    <${Pending} of="the outbox" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Mails of the outbox" columns=${COLUMNS} rows=${data.mails} keyOf=${idOf} isBusy=${isLoading}
          empty="No mail yet. A sign-up, or a password that was forgotten, writes one." />
        <p class="fine outbox-note">The newest mails. In development they are kept in the outbox and reach nobody.</p>`
    }`
}

/** @param {{ id: string }} props */
function Mail({ id }) {
  const { data, failure, reload } = useLoad(
    (signal) => call(`/dev/mails/${encodeURIComponent(id)}`, { signal }),
    [id],
  )
  const mail = /** @type {OutboxMail | undefined} */ (data)
  return html`<p class="crumb"><${Link} to="/mail">Mail<//></p>
    <${Title} title=${mail?.subject || 'Mail'} />
    <${Pending} of="the mail" data=${mail} failure=${failure} again=${reload} />
    ${
      mail !== undefined &&
      html`<${Panel} title="Mail">
        <dl class="facts">
          <${Fact} name="To"><${Value} value=${mail.to} /><//>
          <${Fact} name="From"><${Value} value=${mail.from} /><//>
          <${Fact} name="Sent"><${Time} at=${mail.date === '' ? null : mail.date} /><//>
        </dl>
        <p class="mail"><${Linked} text=${mail.text} /></p>
        ${mail.html !== null && html`<details><summary>Source of the part in HTML</summary><pre tabindex="0"><${Value} value=${mail.html} most=${100_000} /></pre></details>`}
      <//>`
    }`
}

/** Links of the service itself, and of https, can be followed. All else is text. @param {{ text: string }} props */
const Linked = ({ text }) =>
  html`${text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) =>
      index % 2 === 1 && isSafe(part)
        ? html`<a href=${part} target="_blank" rel="noopener noreferrer"><${Value} value=${part} most=${4_000} /></a>`
        : part !== '' && html`<${Value} value=${part} most=${100_000} />`,
    )}`

/** @param {string} address */
function isSafe(address) {
  const url = URL.parse(address)
  return url !== null && (url.protocol === 'https:' || url.origin === location.origin)
}

/** @typedef {{ setting: string, value: string | null, default: string | null, absent: string | null, source: string, is_secret: boolean }} Setting */

/** How mails are sent. */
function Configured() {
  const { data, failure, reload } = useLoad((signal) => call('/admin/settings', { signal }), [])
  /** @type {readonly Setting[]} */
  const settings = (data?.data.settings ?? []).filter((/** @type {Setting} */ { setting }) =>
    setting.startsWith('mail.'),
  )
  return html`<${Panel} title="Configured" actions=${html`<${Link} to="/settings" query=${{ search: 'mail.' }}>All settings<//>`}>
    <${Failure} of=${failure} again=${reload} />
    <dl class="facts">${settings.map(
      ({ setting, value, absent, source, is_secret }) => html`<${Fact} name=${setting.slice('mail.'.length)}>
        ${value === null ? html`<span class="soft">${absent ?? 'none'}</span>` : html`<${Value} value=${value} />`}
        ${is_secret && html` <${Mark}>secret<//>`} <span class="soft">${source}</span><//>`,
    )}</dl>
    <p class="fine">Home tells whether the mail server answers: the findings of <code>gatehouse doctor</code>.</p>
  <//>`
}
