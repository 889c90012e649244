import { useState } from 'preact/hooks'
import { call } from '../../api.js'
import { Failure, Field, Panel, say, take, useFocus } from '../../controls.js'
import { useAct, useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { ColumnFields, DEFAULT_HINT, definitionOf, NEW_COLUMN } from './column-fields.js'
import { capabilitiesOf, noteChange } from './described.js'

/** The form for a new table. @param {import('./described.js').TableViewProps} props */
export function View({ at: { client } }) {
  const [name, setName] = useState('')
  const [schema, setSchema] = useState('public')
  const [columns, setColumns] = useState([{ ...NEW_COLUMN, id: 0 }])
  const { run, isBusy, failure } = useAct()
  const form = useFocus()
  const types = useLoad((signal) => capabilitiesOf(client, signal), [client])
  const change = (/** @type {number} */ id) => (/** @type {Partial<typeof NEW_COLUMN>} */ part) =>
    setColumns((before) => before.map((one) => (one.id === id ? { ...one, ...part } : one)))
  const add = () =>
    setColumns((before) => [
      ...before,
      { ...NEW_COLUMN, id: Math.max(-1, ...before.map(({ id }) => id)) + 1 },
    ])
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    return run(async () => {
      const body = { schema_name: schema, table_name: name, columns: columns.map(definitionOf) }
      await call('/management/tables', { method: 'POST', client, body })
      say(`${name} was created`)
      noteChange()
      const place = {
        client,
        schema: schema === 'public' ? undefined : schema,
        table: name,
        view: 'structure',
      }
      go(addressOf('/data', place), { replaces: true })
    })
  }
  const hasKey = columns.some(({ isPrimary }) => isPrimary)
  return html`<${Panel} title="New table">
    <form class="padded" ref=${form} onSubmit=${submit}>
      <div class="column-fields">
        <${Field} label="Table" required autofocus maxlength="63" autocomplete="off" spellcheck=${false} value=${name} onInput=${take(setName)} />
        <${Field} label="Schema" required maxlength="63" autocomplete="off" spellcheck=${false} value=${schema} onInput=${take(setSchema)} />
      </div>
      ${columns.map(
        (column, index) => html`<fieldset key=${column.id} class="column">
          <legend>Column ${index + 1}</legend>
          <${ColumnFields} draft=${column} types=${types.data?.allowed_column_data_types ?? []} change=${change(column.id)} />
          <button type="button" class="plain" aria-label=${`Leave it out: column ${index + 1}`}
            onClick=${() => setColumns((before) => before.filter(({ id }) => id !== column.id))}>Leave it out</button>
        </fieldset>`,
      )}
      <p><button type="button" onClick=${add}>Another column</button></p>
      ${DEFAULT_HINT}
      <p class="hint">${hasKey ? 'The primary key is as chosen.' : html`Without a primary key the table gets a column <code>id</code>, which numbers its rows.`} With row-level security it is closed to users until its policies say otherwise.</p>
      <${Failure} of=${failure ?? types.failure} />
      <div class="row"><button class="primary" disabled=${isBusy}>Create table</button></div>
    </form>
  <//>`
}
