import htm from 'htm'
import { h } from 'preact'

/** The types of the package do not say what it exports. */
const bound = /** @type {{ bind(create: typeof h): Template }} */ (/** @type {unknown} */ (htm))

/** @typedef {(parts: TemplateStringsArray, ...values: unknown[]) => any} Template */

/** Templates of elements. Values are text, attributes or elements, and never markup. */
export const html = bound.bind(h)
