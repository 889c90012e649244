/** For screens that were written before `parse` went to api.js, and the others to values.js. */
export { parse } from './api.js'
export { isNumeric, textOf } from './values.js'
