import { call } from '../../api.js'
import { Link, Mark, Pager, Panel, Pending, Table, Title } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { may } from '../../session.js'
import { duration, ShortId, Time, textOf, Value } from '../../values.js'

/**
 * @typedef {{ id: number, created_at: string, pipeline_run_id: string, pipeline_name: string | null, step: string, service_client: string, table_name: string | null, status_code: number, duration_ms: number, error_message: string | null, details: Readonly<Record<string, unknown>> }} Step
 * @typedef {import('../../session.js').Caller} Caller
 */

const LIMIT = 20

/** @param {Caller} caller @param {AbortSignal} signal @param {object} body @returns {Promise<readonly Step[]>} */
async function stepsBy(caller, signal, body) {
  const client = await loggingClient(caller, signal)
  const asked = { table_name: 'pipeline_step_log', ...body }
  const { data } = await call('/gateway/fetch', { method: 'POST', client, body: asked, signal })
  return data
}

/** The client that holds the log: what the settings say, for who may see them, or its usual name. @param {Caller} caller @param {AbortSignal} signal */
async function loggingClient(caller, signal) {
  if (!may(caller, ['operator:settings'])) return 'logging'
  const { data } = await call('/admin/settings', { signal })
  /** @type {readonly { setting: string, value: string | null }[]} */
  const settings = data.settings
  return settings.find(({ setting }) => setting === 'gateway.logging_client')?.value ?? 'logging'
}

/** Whether the caller may read the log, as far as the browser knows. @param {Caller} caller */
export const seesLog = ({ clients, person }) =>
  person !== undefined || Object.hasOwn(clients, '*')
    ? [...(clients['*'] ?? []), ...(clients.logging ?? [])].some((right) => OF_LOG.includes(right))
    : Object.hasOwn(clients, 'logging')

const OF_LOG = ['*', 'gateway.*', 'gateway.read', '*.read', 'pipeline_step_log.read', 'pipeline_step_log.*']

/** @param {Step} step */
const StateOf = ({ status_code: code, error_message: error, details }) =>
  code === 200
    ? html`${details.outcome === 'too_many_errors' ? html`<${Mark} tone="bad">too many errors<//>` : html`<${Mark} tone="good">done<//>`}${
        details.dry_run === true && html` <${Mark}>dry<//>`
      }`
    : html`<${Mark} tone="warn">${error ?? code}<//>`

/** @type {readonly import('../../controls.js').Column<Step>[]} */
const RUNS = [
  {
    name: 'at',
    title: 'Time',
    cell: ({ created_at, pipeline_run_id: id }) =>
      html`<${Link} to=${`/pipelines/runs/${id}`}><${Time} at=${created_at} /><//>`,
  },
  {
    name: 'name',
    title: 'Pipeline',
    cell: ({ pipeline_name: name }) =>
      name === null ? html`<span class="null">no name</span>` : html`<${Value} value=${name} />`,
  },
  {
    name: 'sink',
    title: 'Into',
    cell: ({ table_name, service_client }) =>
      html`<${Value} value=${table_name} /> <span class="soft">on <${Value} value=${service_client} /></span>`,
  },
  { name: 'stored', title: 'Stored', isNumber: true, cell: ({ details }) => textOf(details.rows_inserted) },
  { name: 'refused', title: 'Refused', isNumber: true, cell: ({ details }) => textOf(details.rows_refused) },
  { name: 'state', title: 'State', cell: StateOf },
]

/** The last runs, by anyone. @param {{ caller: Caller, query: import('../../router.js').Query }} props */
export function Runs({ caller, query }) {
  const offset = Math.max(0, Number(query.offset ?? 0) || 0)
  const { data, failure, reload, isLoading } = useLoad(
    (signal) =>
      stepsBy(caller, signal, {
        conditions: [{ column: 'step', value: 'sink' }],
        sort_by: { field: 'id', direction: 'desc' },
        ...{ limit: LIMIT + 1, offset },
      }),
    [offset],
  )
  const rows = data?.slice(0, LIMIT) ?? []
  const again = html`<button type="button" class="plain" disabled=${isLoading} onClick=${reload}>Read again</button>`
  return html`<${Panel} title="Past runs" note="those that have failed are not in the log" actions=${again}>
      <${Pending} of="the log" data=${data} failure=${failure} again=${reload} />
      ${data !== undefined && html`<${Table} label="Runs by time" columns=${RUNS} rows=${rows} isBusy=${isLoading} keyOf=${(/** @type {Step} */ { id }) => textOf(id)} empty="No run yet." />`}
    <//>
    ${data !== undefined && html`<${Pager} shown=${rows.length} offset=${offset} limit=${LIMIT} hasMore=${data.length > LIMIT} />`}`
}

/** @type {readonly import('../../controls.js').Column<Step>[]} */
const STEPS = [
  { name: 'step', title: 'Step', cell: ({ step }) => step },
  {
    name: 'client',
    title: 'Client',
    cell: ({ service_client }) => html`<${Value} value=${service_client} />`,
  },
  {
    name: 'table',
    title: 'Table',
    cell: ({ table_name }) => table_name !== null && html`<${Value} value=${table_name} />`,
  },
  { name: 'took', title: 'Took', isNumber: true, cell: ({ duration_ms }) => duration(Number(duration_ms)) },
  { name: 'state', title: 'State', cell: StateOf },
  {
    name: 'details',
    title: 'Details',
    cell: ({ details }) =>
      Object.entries(details).map(
        ([name, value]) =>
          html`<span class="detail"><span class="soft"><${Value} value=${name} /></span> <${Value} value=${value} /></span> `,
      ),
  },
]

/** The steps of one run. @param {{ id: string, caller: Caller }} props */
export function RunView({ id, caller }) {
  const { data, failure, reload, isLoading } = useLoad(
    (signal) =>
      stepsBy(caller, signal, {
        conditions: [{ column: 'pipeline_run_id', value: id }],
        sort_by: { field: 'id' },
      }),
    [id],
  )
  const name = data?.[0]?.pipeline_name
  return html`<p class="crumb"><${Link} to="/pipelines">Pipelines<//></p>
    <${Title} title="Run"><button type="button" disabled=${isLoading} onClick=${reload}>Read again</button><//>
    <p class="acts"><${ShortId} of=${id} />${typeof name === 'string' && html` of <${Value} value=${name} />`}${data?.[0] && html` · <${Time} at=${data[0].created_at} />`}</p>
    <${Pending} of="the log" data=${data} failure=${failure} again=${reload} />
    ${
      data !== undefined &&
      html`<${Table} label="Steps" columns=${STEPS} rows=${data} isBusy=${isLoading} keyOf=${(/** @type {Step} */ step) => step.step}
      empty="The log does not have this run yet. It is written after the answer; a run that has failed is not in it." />`
    }`
}
