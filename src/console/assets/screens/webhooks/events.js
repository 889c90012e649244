import { useState } from 'preact/hooks'
import { Check, Pending } from '../../controls.js'
import { useLoad } from '../../hooks.js'
import { html } from '../../html.js'
import { callWebhooks } from './calls.js'

/**
 * @typedef {{ route_key: string, category: string, title: string, description: string, table_scope_supported: boolean }} Event
 * @typedef {readonly string[]} RouteKeys
 */

/** The vocabulary. @param {import('./calls.js').Caller} caller */
export function useEvents(caller) {
  const { data, failure, reload } = useLoad((signal) => callWebhooks(caller, '/events', { signal }), [])
  /** @type {readonly Event[]} */
  const events = data?.events ?? []
  return { events, failure, reload }
}

/** Events of users belong to no client, and `*` is without them. @param {Event} event @param {boolean} ofUsers */
const isOfKind = ({ category }, ofUsers) => (category === 'auth') === ofUsers

/** The events that these keys name. @param {readonly Event[]} events @param {RouteKeys} keys */
export const eventsOf = (events, keys) =>
  events.filter(
    ({ route_key: key, category }) =>
      keys.includes(key) || keys.includes(`${category}.*`) || (keys.includes('*') && category !== 'auth'),
  )

/**
 * Single events, all of a part, or all.
 * @param {{ events: readonly Event[], failure: unknown, reload: () => void, keys: RouteKeys, ofUsers: boolean, onChange: (keys: RouteKeys) => void }} props
 */
export function EventPicker({ events, failure, reload, keys, ofUsers, onChange }) {
  const offered = events.filter((event) => isOfKind(event, ofUsers))
  const categories = [...new Set(offered.map(({ category }) => category))]
  // A key that this version does not know is kept until it is taken out.
  const known = new Set([
    '*',
    ...categories.map((one) => `${one}.*`),
    ...offered.map(({ route_key }) => route_key),
  ])
  const strange = events.length === 0 ? [] : keys.filter((key) => !known.has(key))
  const choice = (
    /** @type {string} */ key,
    /** @type {unknown} */ label,
    /** @type {boolean} */ isCovered,
    title = '',
  ) => html`<${Check}
    label=${label} title=${title} checked=${isCovered || keys.includes(key)} disabled=${isCovered}
    onChange=${() => onChange(keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key])} />`
  const hasAll = keys.includes('*')
  return html`<fieldset>
    <legend>Events</legend>
    <${Pending} of="the events" data=${events[0]} failure=${failure} again=${reload} />
    ${!ofUsers && offered.length > 0 && choice('*', html`All of them <code>*</code>`, false)}
    ${strange.map((key) => choice(key, html`<code>${key}</code>`, false))}
    ${categories.map((category, at) => {
      const all = `${category}.*`
      const of = offered.filter((event) => event.category === category)
      const isCovered = hasAll || keys.includes(all)
      const startsOpen =
        keys.length === 0
          ? at === 0
          : keys.includes(all) || of.some(({ route_key }) => keys.includes(route_key))
      return html`<${Category} key=${category} title=${TITLES[category] ?? category} startsOpen=${startsOpen}>
        ${choice(all, html`All <code>${all}</code>`, hasAll)}
        ${of.map(({ route_key: key, title, description }) => choice(key, html`<span>${title}</span>`, isCovered, `${key}: ${description}`))}
      <//>`
    })}
  </fieldset>`
}

/** @param {{ title: string, startsOpen: boolean, children?: unknown }} props */
function Category({ title, startsOpen, children }) {
  const [isOpen, setOpen] = useState(startsOpen)
  const follow = (/** @type {{ currentTarget: HTMLDetailsElement }} */ { currentTarget }) =>
    setOpen(currentTarget.open)
  return html`<details open=${isOpen} onToggle=${follow}><summary>${title}</summary><div class="event-choices">${children}</div></details>`
}

/** @type {Readonly<Record<string, string>>} */
const TITLES = {
  gateway: 'Rows, SQL and functions',
  pipeline: 'Pipelines',
  schema: 'Changes of the schema',
  backup: 'Backups',
  auth: 'Users and organizations',
}
