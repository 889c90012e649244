/**
 * Numbers of the database have more digits than those of JavaScript. One that would lose some is kept as its text, in an object that
 * JSON.stringify writes as it was read.
 * @param {string} text
 * @returns {any}
 */
export const parse = (text) => JSON.parse(text, /** @type {any} */ (keepDigits))

/**
 * @param {string} _name
 * @param {unknown} value
 * @param {{ source?: string }} [context] absent in browsers that do not tell the source
 */
function keepDigits(_name, value, { source } = {}) {
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  return rawJson.rawJSON(source)
}

const rawJson = /** @type {{ rawJSON(text: string): unknown, isRawJSON(value: unknown): boolean }} */ (
  /** @type {unknown} */ (JSON)
)

/**
 * A value as the service has written it: texts without quotes, numbers with every digit.
 * @param {unknown} value
 * @returns {string}
 */
export function textOf(value) {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  return JSON.stringify(value) ?? ''
}

/** @param {unknown} value */
export const isNumeric = (value) => typeof value === 'number' || rawJson.isRawJSON?.(value) === true
