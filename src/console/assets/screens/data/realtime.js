import { ApiError, call } from '../../api.js'
import { Failure, Mark, Panel, Pending, say } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { pathOf } from './described.js'

/** Whether readers are told of changed rows. @param {{ at: import('./described.js').At, mayWrite: boolean }} props */
export function Realtime({ at, mayWrite }) {
  const { client, schema, table } = at
  const path = pathOf(at, '/realtime')
  const { data, failure, reload } = useLoad(
    (signal) => call(path, { client, query: { schema_name: schema }, signal }),
    [path, client, schema],
  )
  const act = useAct()
  const isLive = data?.data.enabled === true
  const turn = () =>
    act.run(async () => {
      await call(path, { method: 'PUT', client, body: { schema_name: schema, enabled: !isLive } })
      say(isLive ? `${table} is no longer live` : `${table} is live`)
      reload()
    })
  // Another kind of database has no live rows.
  if (failure instanceof ApiError && failure.code === 'unsupported_by_driver') return null
  const button =
    mayWrite &&
    data !== undefined &&
    html`<button type="button" disabled=${act.isBusy} onClick=${turn}>${isLive ? 'End live rows' : 'Make it live'}</button>`
  return html`<${Panel} title="Live rows" actions=${button}
      note=${data && html`<${Mark} tone=${isLive ? 'good' : 'plain'}>${isLive ? 'on' : 'off'}<//>`}>
    <${Pending} of="its state" data=${data} failure=${failure} again=${reload} />
    <${Failure} of=${act.failure} />
    <p class="soft padded">${isLive ? 'Readers who follow this table are told of each changed row that they may read. Ending it removes the triggers, and ends their streams.' : 'Triggers can note which rows change, so that readers who follow the table are told.'}</p>
  <//>`
}
