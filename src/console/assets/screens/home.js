import { call } from '../api.js'
import { Line, Link, Mark, Panel, Pending, Table, Title } from '../controls.js'
import { useLoad } from '../hooks.js'
import { html } from '../html.js'
import { may } from '../session.js'
import { counted, countOf, duration, Value } from '../values.js'

/** The state of the service, as far as this person may see it. @param {import('../router.js').ViewProps} props */
export function View({ caller }) {
  const seesMetrics = may(caller, ['operator:metrics'])
  const seesSettings = may(caller, ['operator:settings'])
  const seesWebhooks = may(caller, ['operator:webhooks'])
  return html`<${Title} title="Home" />
    ${seesMetrics && html`<${Activity} />`}
    <div class="columns">
      ${seesSettings && html`<${Findings} />`}
      ${seesMetrics && html`<${Components} />`}
      ${seesWebhooks && html`<${Webhooks} caller=${caller} />`}
    </div>
    ${seesMetrics && html`<${Statements} />`}
    ${
      !seesMetrics &&
      !seesSettings &&
      !seesWebhooks &&
      html`<p>${
        caller.allows.size === 0 && Object.keys(caller.clients).length === 0
          ? 'Your roles open nothing of the console. An administrator gives you one that does, or the operator adds one to auth.admin.roles.'
          : 'The screens that your roles open are in the navigation.'
      }</p>`
    }`
}

/** @typedef {{ '2xx': number, '3xx': number, '4xx': number, '5xx': number }} Responses */
/** @typedef {{ requests: { auth: Responses, gateway: Responses }, sign_ins: { succeeded: number, failed: number }, deliveries: { succeeded: number, failed: number, retried: number }, jobs: { done: number, failed: number } }} Counts */

const CLASSES = /** @type {const} */ (['2xx', '3xx', '4xx', '5xx'])

/** @param {Counts} counts @param {readonly (typeof CLASSES[number])[]} [classes] */
const responses = ({ requests: { auth, gateway } }, classes = CLASSES) =>
  classes.reduce((sum, one) => sum + auth[one] + gateway[one], 0)

/** The last hour, in four figures with their minutes. */
function Activity() {
  const { data, failure, reload } = useLoad((signal) => call('/admin/activity', { signal }), [])
  if (failure !== undefined || data === undefined)
    return html`<${Pending} of="the last hour" failure=${failure} again=${reload} />`
  const { total, minutes } = /** @type {{ total: Counts, minutes: readonly Counts[] }} */ (data.data)
  const [refused, failed] = [responses(total, ['4xx']), responses(total, ['5xx'])]
  return html`<section class="figures" aria-label="The last hour">
    <${Figure} title="Requests" count=${responses(total)} minutes=${minutes.map((minute) => responses(minute))}
      note="last hour" />
    <${Figure} title="Errors" count=${failed} tone=${failed > 0 ? 'bad' : undefined}
      minutes=${minutes.map((minute) => responses(minute, ['5xx']))} note=${`${counted(refused)} refused (4xx)`} />
    <${Figure} title="Sign-ins" count=${total.sign_ins.succeeded} minutes=${minutes.map(({ sign_ins }) => sign_ins.succeeded)}
      note=${`${counted(total.sign_ins.failed)} failed`} />
    <${Figure} title="Deliveries" count=${total.deliveries.succeeded} minutes=${minutes.map(({ deliveries }) => deliveries.succeeded)}
      tone=${total.deliveries.failed > 0 ? 'bad' : undefined}
      note=${`${counted(total.deliveries.failed)} failed, ${counted(total.deliveries.retried)} retried`} />
  </section>`
}

/** @param {{ title: string, count: number, minutes: readonly number[], note: string, tone?: string }} props */
function Figure({ title, count, minutes, note, tone }) {
  const most = Math.max(1, ...minutes)
  const width = 240 / minutes.length
  const heightOf = (/** @type {number} */ value) => (value === 0 ? 1 : Math.max(2, (value / most) * HEIGHT))
  return html`<div class="figure">
    <h2>${title}</h2>
    <p class=${`count ${tone ?? ''}`}>${counted(count)}</p>
    <p class="soft">${note}</p>
    <svg viewBox=${`0 0 240 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${title} by minute, at most ${counted(most)}`}>
      ${minutes.map(
        (
          value,
          index,
        ) => html`<rect class=${value === 0 ? 'none' : undefined} x=${index * width} width=${width * 0.7}
          y=${HEIGHT - heightOf(value)} height=${heightOf(value)} />`,
      )}
    </svg>
  </div>`
}

/** Of the bars, in the units of their picture. */
const HEIGHT = 36

/** What is wrong, and what to do, as `gatehouse doctor` says it. */
function Findings() {
  const { data, failure, isLoading, reload } = useLoad((signal) => call('/admin/doctor', { signal }), [])
  /** @type {readonly { subject: string, ok: boolean, says: string }[]} */
  const findings = data?.data.findings ?? []
  const problems = findings.filter(({ ok }) => !ok)
  const fine = findings.filter(({ ok }) => ok)
  const again = html`<button type="button" disabled=${isLoading} onClick=${reload}>
    ${isLoading ? 'Checking …' : 'Check again'}
  </button>`
  const verdict =
    problems.length === 0
      ? html`<${Mark} tone="good">healthy<//>`
      : html`<${Mark} tone="bad">${countOf(problems.length, 'problem')}<//>`
  return html`<${Panel} title="Findings" actions=${again} note=${data && verdict}>
    <${Pending} of="the checks" data=${data} failure=${failure} />
    <ul class="list">${problems.map((finding) => html`<${Finding} of=${finding} />`)}</ul>
    ${
      fine.length > 0 &&
      html`<details>
        <summary>${countOf(fine.length, 'check is', 'checks are')} fine</summary>
        <ul class="list">${fine.map((finding) => html`<${Finding} of=${finding} />`)}</ul>
      </details>`
    }
  <//>`
}

/** @param {{ of: { subject: string, ok: boolean, says: string } }} props */
const Finding = ({ of: { subject, ok, says } }) => html`<li>
  <strong><${Value} value=${subject} /></strong>
  <p class=${ok ? 'soft' : undefined}><${Value} value=${says} most=${2_000} /></p>
</li>`

function Components() {
  const { data, failure, reload } = useLoad((signal) => call('/health', { signal }), [])
  /** @type {readonly { name: string, status: string, message?: string }[]} */
  const components = data?.components ?? []
  const isFine = data?.status === 'ok'
  return html`<${Panel} title="Components" note=${data && html`<${Mark} tone=${isFine ? 'good' : 'bad'}>${data.status}<//>`}>
    <${Pending} of="the components" data=${data} failure=${failure} again=${reload} />
    <ul class="list">${components.map(
      ({ name, status, message }) => html`<${Line} left=${html`<${Value} value=${name} />`}
        note=${message === undefined ? undefined : html`<${Value} value=${message} />`}
        right=${html`<${Mark} tone=${status === 'online' ? 'good' : 'bad'}>${status}<//>`} />`,
    )}</ul>
    ${
      data?.versions &&
      html`<p class="fine">Node ${data.versions.node} · PostgreSQL <${Value} value=${data.versions.postgresql} />
        ${' '}· clocks apart by ${data.clock_drift_ms ?? '?'} ms</p>`
    }
  <//>`
}

/** Webhooks whose last deliveries have failed. @param {{ caller: import('../session.js').Caller }} props */
function Webhooks({ caller }) {
  // The route asks for a client, and lists the webhooks of all.
  const client = Object.keys(caller.clients).find((name) => name !== '*') ?? 'default'
  const { data, failure, reload } = useLoad(
    (signal) => call('/admin/webhooks', { query: { state: 'failing', limit: 100 }, client, signal }),
    [client],
  )
  /** @type {readonly { id: string, url: string, consecutive_failures: number, disabled_reason: string | null }[]} */
  const failing = data?.data.webhooks ?? []
  return html`<${Panel} title="Failing deliveries" actions=${html`<${Link} to="/webhooks">Webhooks<//>`}>
    <${Pending} of="the webhooks" data=${data} failure=${failure} again=${reload} />
    ${data !== undefined && failing.length === 0 && html`<p class="empty">No webhook fails.</p>`}
    <ul class="list">${failing.map(
      ({ id, url, consecutive_failures, disabled_reason }) => html`<${Line} key=${id}
        left=${html`<${Link} to=${`/webhooks/${id}`}><${Value} value=${url} /><//>`}
        note=${disabled_reason === null ? undefined : html`<${Value} value=${disabled_reason} />`}
        right=${html`<${Mark} tone="bad">${countOf(consecutive_failures, 'failure')}<//>`} />`,
    )}</ul>
  <//>`
}

/** @typedef {{ client: string, operation: string, table: string, conditions: string, order: string, count: number, p50_ms: number, p95_ms: number, max_ms: number }} Statement */

/** @type {readonly import('../controls.js').Column<Statement>[]} */
const COLUMNS = [
  { name: 'client', title: 'Client', cell: ({ client }) => html`<${Value} value=${client} />` },
  { name: 'operation', title: 'Operation', cell: ({ operation }) => operation },
  { name: 'table', title: 'Table', cell: ({ table }) => html`<${Value} value=${table} />` },
  {
    name: 'conditions',
    title: 'Conditions',
    cell: ({ conditions }) => (conditions === '' ? '' : html`<code><${Value} value=${conditions} /></code>`),
  },
  { name: 'count', title: 'Count', isNumber: true, cell: ({ count }) => counted(count) },
  { name: 'p50', title: 'Median', isNumber: true, cell: ({ p50_ms }) => duration(p50_ms) },
  { name: 'p95', title: 'p95', isNumber: true, cell: ({ p95_ms }) => duration(p95_ms) },
  { name: 'max', title: 'Longest', isNumber: true, cell: ({ max_ms }) => duration(max_ms) },
]

function Statements() {
  const { data, failure, reload } = useLoad(
    (signal) => call('/admin/statements', { query: { limit: 10 }, signal }),
    [],
  )
  return html`<${Panel} title="Slowest statements" note="by p95, since the start">
    <${Pending} of="the statements" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Statements by time" columns=${COLUMNS} rows=${data.data.statements}
      keyOf=${(/** @type {Statement} */ _row, /** @type {number} */ index) => String(index)}
      empty="No statement on a client has run since the start." />`
    }
  <//>`
}
