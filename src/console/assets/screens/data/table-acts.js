import { useState } from 'preact/hooks'
import { ActForm, Field, say, take } from '../../controls.js'
import { html } from '../../html.js'
import { addressOf, go } from '../../router.js'
import { holds, holdsTable } from '../../session.js'
import { edit, noteChange, pathOf } from './described.js'
import { Drop, rowsOf } from './drop.js'

/** What is done to the table as a whole. @param {import('./described.js').TableViewProps & { rows: number, mayWrite: boolean }} props */
export function TableActs({ at, caller, rows, mayWrite }) {
  const [open, setOpen] = useState(/** @type {'rename' | 'drop' | undefined} */ (undefined))
  const { client, schema, table } = at
  const mayRename = mayWrite && holdsTable(caller, at, 'read') && holdsTable(caller, at, 'write')
  const mayDrop = holds(caller, client, 'management.tables.drop')
  const close = () => setOpen(undefined)
  const leave = (/** @type {string} */ done, /** @type {string | undefined} */ next) => {
    say(done)
    noteChange()
    const place = {
      client,
      schema: schema === 'public' ? undefined : schema,
      table: next,
      view: next && 'structure',
    }
    go(addressOf('/data', place), { replaces: true })
  }
  const lost = `The table is dropped with ${rowsOf(rows)}, and with its indexes, policies and rights.`
  return html`<div class="row acts">
      ${mayRename && html`<button type="button" onClick=${() => setOpen('rename')}>Rename table</button>`}
      ${mayDrop && html`<button type="button" class="danger" onClick=${() => setOpen('drop')}>Drop table</button>`}
    </div>
    ${open === 'rename' && html`<${Rename} at=${at} onDone=${leave} onClose=${close} />`}
    ${
      open === 'drop' &&
      html`<${Drop} title=${`Drop ${table}?`} verb="Drop the table" text=${lost} client=${client} schema=${schema} path=${pathOf(at)}
        onDone=${() => leave(`${table} was dropped`, undefined)} onClose=${close} />`
    }`
}

/** @param {{ at: import('./described.js').At, onDone: (done: string, name: string) => void, onClose: () => void }} props */
function Rename({ at, onDone, onClose }) {
  const [name, setName] = useState(at.table)
  const work = async () => {
    await edit(at, [{ operation: 'rename_table', new_name: name }])
    onDone(`${at.table} is ${name} now`, name)
  }
  return html`<${ActForm} title=${`Rename ${at.table}`} verb="Rename" onClose=${onClose} work=${work}>
    <${Field} label="New name" required autofocus maxlength="63" autocomplete="off" spellcheck=${false} value=${name} onInput=${take(setName)}
      hint="Rights of keys and roles, public routes and pipelines are by name: they do not follow the table." />
  <//>`
}
