/** By a line a member, with the text of each value as it was written. @param {string} json */
export function indented(json) {
  const { rawJSON } = /** @type {{ rawJSON?(text: string): unknown }} */ (/** @type {unknown} */ (JSON))
  const reviver = /** @type {any} */ (
    (/** @type {string} */ _name, /** @type {unknown} */ value, { source = '' } = {}) =>
      typeof value === 'number' && rawJSON !== undefined ? rawJSON(source) : value
  )
  return JSON.stringify(JSON.parse(json, reviver), null, 2)
}
