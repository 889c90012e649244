import { ApiError, ask, call } from '../../api.js'

/**
 * @typedef {Readonly<Record<string, unknown>>} Row
 * @typedef {{ returned_row_count: number, rows_affected: number, statement_count: number, duration_ms: number, columns: readonly { name: string, type: string | null }[] }} Meta
 * @typedef {{ kind: 'rows', rows: readonly Row[], meta: Meta }} Ran
 * @typedef {{ kind: 'plan', plan: import('./plan.js').Explained, isMeasured: boolean }} Planned
 */

/**
 * Runs the text as it is. The service ends the statement when the request is aborted.
 * @param {string} client
 * @param {string} text
 * @param {AbortSignal} signal
 * @returns {Promise<Ran>}
 */
export async function runSql(client, text, signal) {
  const { data, meta } = await call('/gateway/query', {
    method: 'POST',
    client,
    body: { query: text },
    signal,
  })
  return { kind: 'rows', rows: data, meta }
}

const PLAN = 'explain (format json) '
const MEASURED = 'explain (analyze, buffers, format json) '

/**
 * The plan of a statement. With measurements it is run, so one is asked before it writes. Undefined when the person does not want that.
 * @param {string} client
 * @param {string} text
 * @param {{ measures: boolean, signal: AbortSignal }} how
 * @returns {Promise<Planned | undefined>}
 */
export async function explain(client, text, { measures, signal }) {
  const plan = await planOf(client, PLAN, text, signal)
  if (!measures) return { kind: 'plan', plan, isMeasured: false }
  if (mayWrite(plan, text) && !(await ask(WRITES))) return undefined
  return { kind: 'plan', plan: await planOf(client, MEASURED, text, signal), isMeasured: true }
}

const WRITES = {
  kind: /** @type {const} */ ('consent'),
  title: 'Run a statement that writes?',
  text: 'ANALYZE runs the statement to measure it. What it writes stays written.',
  verb: 'Run it',
  isDangerous: true,
}

/** @param {string} client @param {string} before @param {string} text @param {AbortSignal} signal */
async function planOf(client, before, text, signal) {
  // With `params`, even none, the service takes exactly one statement: of two, the second would be run.
  const body = { query: before + text, params: [] }
  const { data } = await call('/gateway/query', { method: 'POST', client, body, signal }).catch((error) => {
    throw placedIn(text, before.length, error)
  })
  return data[0]['QUERY PLAN'][0]
}

/** The position in the text of the person. @param {string} text @param {number} added @param {unknown} error */
function placedIn(text, added, error) {
  if (!(error instanceof ApiError) || error.details?.position === undefined) return error
  const position = error.details.position - added
  const isInside = position > 0 && position <= [...text].length + 1
  error.details = { ...error.details, position: isInside ? position : undefined }
  return error
}

/** Besides what the plan shows, all that is no query: its plan is that of the query inside. @param {import('./plan.js').Explained} plan @param {string} text */
function mayWrite({ Plan }, text) {
  const words = text.replaceAll(/--.*|\/\*[\s\S]*?\*\//g, ' ').match(/[a-z]+/gi) ?? []
  const isQuery = /^(?:select|with|values|table)$/i.test(words[0] ?? '')
  return !isQuery || words.some((word) => /^into$/i.test(word)) || writesIn(Plan)
}

/** @param {import('./plan.js').PlanNode} node @returns {boolean} */
const writesIn = (node) => node['Node Type'] === 'ModifyTable' || (node.Plans ?? []).some(writesIn)

/**
 * Where the failure is, in UTF-16 units of the text that was sent.
 * @param {unknown} failure
 * @param {string} text
 */
export function positionIn(failure, text) {
  const position = failure instanceof ApiError ? failure.details?.position : undefined
  return typeof position === 'number' ? [...text].slice(0, position - 1).join('').length : undefined
}
