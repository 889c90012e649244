import { useState } from 'preact/hooks'
import { ask, call } from '../../api.js'
import { Fact, Failure, Link, Panel, Pending, say, Title } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { may } from '../../session.js'
import { Time, Value } from '../../values.js'
import { Creator } from '../parts/creator.js'
import { changesOf, typedOf } from './facts.js'
import { RouteForm } from './form.js'
import { Callers, limitOf, MEANINGS, RouteState, Target } from './record.js'
import { Trial } from './trial.js'

/** @typedef {import('./record.js').Route} Route */

/** One route, and a form that tries it. @param {{ routeKey: string, caller: import('../../session.js').Caller }} props */
export function RouteView({ routeKey, caller }) {
  const path = `/admin/public-routes/${encodeURIComponent(routeKey)}`
  const { data, failure, reload } = useLoad((signal) => call(path, { signal }), [path])
  const [isEdited, setEdited] = useState(false)
  const route = /** @type {Route | undefined} */ (data?.data)
  const crumb = html`<p class="crumb"><${Link} to="/public-routes">Public routes<//></p>`
  if (route === undefined)
    return html`${crumb}<${Title} title="Public route" /><${Pending} of="the route" failure=${failure} again=${reload} />`
  const save = async (/** @type {import('./facts.js').Typed} */ typed) => {
    const body = changesOf(typedOf(route), typed)
    if (Object.keys(body).length > 0) {
      await call(path, { method: 'PATCH', body })
      say(`${routeKey} was changed`)
    }
    setEdited(false)
    reload()
  }
  return html`${crumb}
    <${Title} title=${route.route_key}><${RouteState} of=${route} /><//>
    <${Failure} of=${failure} again=${reload} />
    ${
      isEdited
        ? html`<${RouteForm} typed=${typedOf(route)} caller=${caller} verb="Save" save=${save} onCancel=${() => setEdited(false)} />`
        : html`<${Acts} of=${route} path=${path} onEdit=${() => setEdited(true)} reload=${reload} />
          <div class="columns">
            <${Facts} of=${route} caller=${caller} />
            <${Trial} key=${route.updated_at} of=${route} />
          </div>`
    }`
}

/** @param {{ of: Route, path: string, onEdit: () => void, reload: () => void }} props */
function Acts({ of: { route_key: name, is_active }, path, onEdit, reload }) {
  const { run, isBusy, failure } = useAct()
  const agrees = (/** @type {{ title: string, text: string, verb: string }} */ question) =>
    ask({ kind: 'consent', isDangerous: true, ...question })
  const turn = async () => {
    const text = `Callers of /public/${name} get 403 route_inactive from now on, and streams end. It can be opened again.`
    if (is_active && !(await agrees({ title: `Close ${name}?`, text, verb: 'Close the route' }))) return
    await run(async () => {
      await call(path, { method: 'PATCH', body: { is_active: !is_active } })
      say(`${name} is ${is_active ? 'closed' : 'open'}`)
      reload()
    })
  }
  const remove = async () => {
    const text = `Its record is deleted, and callers of /public/${name} get 404 from now on. The rows stay. This cannot be undone.`
    if (!(await agrees({ title: `Delete ${name}?`, text, verb: 'Delete the route' }))) return
    await run(async () => {
      await call(path, { method: 'DELETE' })
      say(`${name} was deleted`)
      go(addressOf('/public-routes'), { replaces: true })
    })
  }
  return html`<div class="row acts">
      <button type="button" onClick=${onEdit}>Edit</button>
      <button type="button" disabled=${isBusy} onClick=${turn}>${is_active ? 'Close' : 'Open'}</button>
      <button type="button" class="danger" disabled=${isBusy} onClick=${remove}>Delete</button>
    </div>
    <${Failure} of=${failure} />`
}

/** A condition a line. @param {unknown} conditions */
const linesOf = (conditions) =>
  [conditions]
    .flat()
    .map((one) => JSON.stringify(one))
    .join('\n')

/** @param {{ of: Route, caller: import('../../session.js').Caller }} props */
function Facts({ of: route, caller }) {
  const trail =
    may(caller, ['audit:list']) && html`<${Link} to="/audit" query=${{ target: route.id }}>Audit<//>`
  return html`<${Panel} title="Record" actions=${trail}>
    <dl class="facts">
      <${Fact} name="Address"><code>/public/${route.route_key}/…</code><//>
      <${Fact} name="Client"><${Value} value=${route.client_name} /><//>
      <${Fact} name="Opens"><${Target} of=${route} /><//>
      <${Fact} name="Callers may">${route.allowed_ops.map((op) => html`<p><code>${op}</code> <span class="soft">${MEANINGS[op]}</span></p>`)}<//>
      <${Fact} name="Columns">${route.columns === null ? html`<span class="soft">all</span>` : html`<${Value} value=${route.columns.join(', ')} most=${2_000} />`}<//>
      <${Fact} name="Rows">${
        route.conditions === null
          ? html`<span class="soft">all</span>`
          : html`<pre><${Value} value=${linesOf(route.conditions)} most=${5_000} /></pre>`
      }<//>
      ${route.query !== null && html`<${Fact} name="SQL"><pre><${Value} value=${route.query} most=${5_000} /></pre><//>`}
      <${Fact} name="Open to"><${Callers} of=${route} /><//>
      <${Fact} name="Act as">${route.run_as === 'owner' ? 'the client’s own role' : 'the caller'}<//>
      <${Fact} name="Rate">${limitOf(route)} <span class="soft">of one address</span><//>
      <${Fact} name="Origins">${
        route.allowed_origins.length === 0
          ? html`<span class="soft">none but trusted ones</span>`
          : html`<${Value} value=${route.allowed_origins.join(', ')} most=${2_000} />`
      }<//>
      <${Fact} name="Created"><${Time} at=${route.created_at} /><//>
      <${Creator} by=${route.created_by} caller=${caller} />
      <${Fact} name="Changed"><${Time} at=${route.updated_at} /><//>
    </dl>
  <//>`
}
