import { useEffect, useRef, useState } from 'preact/hooks'
import { Mark } from '../../controls.js'
import { html } from '../../html.js'
import { named } from './described.js'
import { asText, hasKey } from './edit.js'
import { conditionsFrom } from './grid-page.js'
import { followRows } from './live-stream.js'

/** Milliseconds between two readings of a table that changes all the time. */
const PAUSE = 1_000

/**
 * @typedef {{ kind: 'opening' } | { kind: 'paused' } | { kind: 'live', isPart: boolean } | { kind: 'stale', why: string } | { kind: 'ended', why: string, mayReturn: boolean }} LiveState
 * `mayReturn`: a session has ended, and the person may sign in again.
 */

/**
 * Follows the rows of a page, and says whether it does.
 * @param {{ place: import('./edit.js').Place, structure: import('./edit.js').Structure, filters: readonly import('./grid-page.js').Filter[], rows: readonly import('./edit.js').Row[], reload: () => void }} props
 */
export function Live({ place, structure, filters, rows, reload }) {
  const { state, restart } = useLive(place, structure, filters, rows, reload)
  const [tone, text, title] = textsOf(state, rows.length, mostFollowed(structure.key))
  return html`<span role="status" title=${title}><${Mark} tone=${tone}>${text}<//></span>${
    state.kind === 'ended' &&
    html`<button type="button" class="plain" onClick=${restart}>Follow again</button>`
  }`
}

/**
 * Reads the page again when others change rows of its filters: where there are more of these than a stream follows, when they change those that
 * are shown. A tab that nobody sees follows nothing, since a browser has six connections to a service of HTTP/1.1 in all of its tabs.
 * @param {import('./edit.js').Place} place
 * @param {import('./edit.js').Structure} structure
 * @param {readonly import('./grid-page.js').Filter[]} filters
 * @param {readonly import('./edit.js').Row[]} rows
 * @param {() => void} reload
 * @returns {{ state: LiveState, restart: () => void }}
 */
function useLive(place, structure, filters, rows, reload) {
  const [state, setState] = useState(/** @type {LiveState} */ ({ kind: 'opening' }))
  const [isPart, setPart] = useState(false)
  const [turn, setTurn] = useState(0)
  const isSeen = useVisible()
  const again = useThrottled(reload)
  const { key } = structure
  const conditions = JSON.stringify(isPart ? [keysOf(key, rows)] : conditionsFrom(filters))
  useEffect(() => {
    if (!isSeen) setState({ kind: 'paused' })
    if (!isSeen || (isPart && rows.length === 0)) return undefined
    const tables = [{ ...named(place), columns: key.map(asText), conditions: JSON.parse(conditions) }]
    return followRows(
      place.client,
      { tables, snapshot: false },
      {
        // What has changed since the page was read, and before this.
        begun: () => {
          setState({ kind: 'live', isPart })
          again()
        },
        changed: again,
        stale: (why) => setState({ kind: 'stale', why }),
        tooMany: () =>
          isPart ? setState({ kind: 'ended', why: 'too many rows', mayReturn: false }) : setPart(true),
        ended: (why, mayReturn) => {
          setState({ kind: 'ended', why, mayReturn })
          // Reading asks for a sign-in, if that is what is missing.
          if (mayReturn) again()
        },
      },
    )
  }, [place, structure, isSeen, isPart, conditions, turn])
  const restart = () => setTurn(turn + 1)
  useEffect(() => {
    if (state.kind === 'ended' && state.mayReturn) restart()
  }, [rows])
  return { state, restart }
}

/** @param {readonly string[]} key @param {readonly import('./edit.js').Row[]} rows */
function keysOf(key, rows) {
  const [column] = key
  return column !== undefined && key.length === 1
    ? { column, operator: 'in', value: rows.map((row) => row[column]) }
    : { or: rows.slice(0, mostFollowed(key)).map((row) => ({ and: hasKey(key, row) })) }
}

/** Rows that a stream follows by their keys: it takes 100 conditions, and one for all values of a single column. @param {readonly string[]} key */
const mostFollowed = ({ length }) => (length === 1 ? Number.POSITIVE_INFINITY : Math.floor(100 / length))

/** False while the tab is hidden. One that was frozen is seen again, too. */
function useVisible() {
  const [isSeen, setSeen] = useState(!document.hidden)
  useEffect(() => {
    const look = () => setSeen(!document.hidden)
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isSeen
}

/** Calls at once, and then not before a pause is over. @param {() => void} work */
function useThrottled(work) {
  const state = useRef({
    timer: /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined),
    isDue: false,
    work,
  })
  state.current.work = work
  useEffect(() => () => clearTimeout(state.current.timer), [])
  const [call] = useState(() => () => {
    const { current } = state
    if (current.timer !== undefined) {
      current.isDue = true
      return
    }
    current.work()
    current.timer = setTimeout(() => {
      const { isDue } = current
      ;[current.timer, current.isDue] = [undefined, false]
      if (isDue) call()
    }, PAUSE)
  })
  return call
}

/** @param {LiveState} state @param {number} shown rows @param {number} most rows that are followed @returns {readonly ['good' | 'warn' | 'plain', string, string?]} */
function textsOf(state, shown, most) {
  switch (state.kind) {
    case 'opening':
      return ['plain', 'live …']
    case 'paused':
      return ['plain', 'paused', 'A tab that is hidden follows no rows.']
    case 'live':
      return state.isPart
        ? [
            'good',
            most < shown ? `live: the first ${most} of these rows` : 'live: these rows',
            'There are more rows than a stream follows, so that new ones are not seen.',
          ]
        : ['good', 'live', 'Changes of others are shown as they come.']
    case 'stale':
      return ['warn', `stale: ${state.why}`, 'The rows may be others by now. It tries again.']
    case 'ended':
      return ['warn', `not live: ${state.why}`, 'Read again shows the rows of now.']
  }
}
