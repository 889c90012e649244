import { useRef, useState } from 'preact/hooks'
import { ask } from '../../api.js'
import { Failure, Link, Pager, Panel, Pending, say, Table, take } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { goWith } from '../../router.js'
import { countOf, duration, Time, Value } from '../../values.js'
import { callWebhooks, mayRead, pathOf } from './calls.js'
import { StatusMark } from './marks.js'

const LIMIT = 25
const STATUSES = ['pending', 'retrying', 'succeeded', 'failed', 'expired']

/** @typedef {import('./calls.js').Delivery} Delivery */

/** @param {string} webhook @returns {readonly import('../../controls.js').Column<Delivery>[]} */
const columnsFor = (webhook) => [
  {
    name: 'created',
    title: 'Time',
    cell: ({ id, created_at }) =>
      html`<${Link} to=${`/webhooks/${webhook}/deliveries/${id}`}><${Time} at=${created_at} /><//>`,
  },
  { name: 'event', title: 'Event', cell: ({ route_key }) => html`<code>${route_key}</code>` },
  { name: 'status', title: 'State', cell: ({ status }) => html`<${StatusMark} of=${status} />` },
  {
    name: 'answer',
    title: 'Answer',
    cell: ({ response_status: code, error, duration_ms: time }) =>
      html`${code ?? (error !== null && html`<${Value} value=${error} most=${80} />`)}${
        time !== null && html` <span class="soft">${duration(time)}</span>`
      }`,
  },
  { name: 'attempt', title: 'Attempts', isNumber: true, cell: ({ attempt }) => attempt },
  {
    name: 'next',
    title: 'Next attempt',
    cell: ({ next_attempt_at: next }) => next !== null && html`<${Time} at=${next} />`,
  },
]

/**
 * The log of a webhook. `turn` changes when an act has written into it.
 * @param {{ webhook: import('./calls.js').Webhook, caller: import('./calls.js').Caller, query: import('../../router.js').Query, turn: number }} props
 */
export function Deliveries({ webhook, caller, query, turn }) {
  const { id, is_active: isActive } = webhook
  const status = STATUSES.includes(query.status ?? '') ? (query.status ?? '') : ''
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const asked = { status, limit: LIMIT, offset }
  const { data, failure, isLoading, reload } = useLoad(
    (signal) => callWebhooks(caller, pathOf(id, '/deliveries'), { query: asked, signal }),
    [id, JSON.stringify(asked), turn],
  )
  const actions = html`<button type="button" class="plain" disabled=${isLoading} onClick=${reload}>Read again</button>`
  return html`<${Panel} title="Deliveries" note="kept for 30 days" actions=${actions}>
      <div class="tools delivery-tools">
        <label>State <select value=${status} onChange=${take((value) => goWith({ status: value, offset: undefined }))}>
          <option value="">All</option>${STATUSES.map((name) => html`<option value=${name}>${name}</option>`)}
        </select></label>
        ${isActive && mayRead(caller, webhook) && html`<${Replay} id=${id} caller=${caller} onDone=${reload} />`}
      </div>
      <${Pending} of="the deliveries" data=${data} failure=${failure} again=${reload} />
      ${
        data !== undefined &&
        html`<${Table} label="Deliveries by time" columns=${columnsFor(id)} rows=${data.deliveries} isBusy=${isLoading}
          keyOf=${(/** @type {Delivery} */ one) => one.id} empty=${status === '' ? 'No event yet. A test sends one.' : 'No delivery is in this state.'} />`
      }
    <//>
    ${
      data !== undefined &&
      html`<${Pager} shown=${data.deliveries.length} offset=${offset} limit=${LIMIT} total=${data.total} isEstimated=${data.total_estimated} />`
    }`
}

/**
 * Makes all failed deliveries again, by steps, so that one sees how far it is and can stop it.
 * @param {{ id: string, caller: import('./calls.js').Caller, onDone: () => void }} props
 */
function Replay({ id, caller, onDone }) {
  const { run, isBusy, failure } = useAct()
  const [count, setCount] = useState(0)
  const isStopped = useRef(false)
  const replay = async () => {
    const text =
      'Every delivery that has failed in the last 30 days is sent again, oldest first, with all its attempts. Your server gets each with the webhook-id that it had.'
    if (!(await ask({ kind: 'consent', title: 'Replay all failed deliveries?', text, verb: 'Replay' })))
      return
    isStopped.current = false
    setCount(0)
    await run(async () => {
      let [total, cursor] = [0, /** @type {string | null | undefined} */ (undefined)]
      do {
        const body = { status: 'failed', ...(cursor !== undefined && { cursor }) }
        const step = await callWebhooks(caller, pathOf(id, '/replay'), { method: 'POST', body })
        total += step.replayed
        cursor = step.next_cursor
        setCount(total)
      } while (cursor !== null && !isStopped.current)
      say(`${countOf(total, 'delivery is', 'deliveries are')} due again`)
    })
    onDone()
  }
  const stop = () => {
    isStopped.current = true
  }
  return html`<button type="button" disabled=${isBusy} onClick=${replay}>Replay failed</button>
    ${
      isBusy &&
      html`<span role="status">${countOf(count, 'delivery is', 'deliveries are')} due …</span>
      <button type="button" onClick=${stop}>Stop</button>`
    }
    <${Failure} of=${failure} />`
}
