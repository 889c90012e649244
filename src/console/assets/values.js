import { html } from './html.js'

/** Characters of a value that are shown. The rest is counted. */
const SHOWN = 300

/** Without a shape of their own, except line breaks, tabs and the joiners of scripts and emoji: they could reorder or hide what is beside them. */
const INVISIBLE = /(?![\n\t\u200c\u200d])[\p{C}\u2028\u2029]/gu

/**
 * A value of the database or of a person, as text. Markup is text, and characters that nobody sees are named.
 * @param {{ value: unknown, most?: number }} props
 */
export function Value({ value, most = SHOWN }) {
  if (value === null || value === undefined) return html`<span class="null">null</span>`
  const text = textOf(value)
  if (text === '') return html`<span class="null">empty</span>`
  const shown = text.length > most ? text.slice(0, most) : text
  const rest = text.length - shown.length
  return html`<bdi class=${isNumeric(value) ? 'number' : undefined}>${withNamedCharacters(shown)}</bdi>${
    rest > 0 && html`<span class="rest"> … and ${counted(rest)} more characters</span>`
  }`
}

/** @param {string} text */
function withNamedCharacters(text) {
  const parts = []
  let end = 0
  for (const { 0: character, index } of text.matchAll(INVISIBLE)) {
    if (index > end) parts.push(text.slice(end, index))
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    parts.push(html`<span class="code-point" title="a character without a shape">U+${code}</span>`)
    end = index + character.length
  }
  return [...parts, text.slice(end)]
}

/** The end of an id, which differs between neighbours: `key:…5e8586430a2d`. Other names are short already. @param {{ of: string }} props */
export function ShortId({ of: id }) {
  const [, before, end] = UUID.exec(id) ?? []
  if (end === undefined) return html`<code class="id"><${Value} value=${id} /></code>`
  return html`<code class="id" title=${id}>${before}<span aria-hidden="true">…</span>${end}</code>`
}

const UUID = /^(\w*:?)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-([0-9a-f]{12})$/

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

/** Also one whose digits are kept (api.js `parse`). @param {unknown} value */
export const isNumeric = (value) =>
  typeof value === 'number' ||
  /** @type {{ isRawJSON?(value: unknown): boolean }} */ (/** @type {unknown} */ (JSON)).isRawJSON?.(
    value,
  ) === true

/** @param {number} count */
export const counted = (count) => new Intl.NumberFormat('en').format(count)

/** @param {number} count @param {string} one @param {string} [several] */
export const countOf = (count, one, several = `${one}s`) => `${counted(count)} ${count === 1 ? one : several}`

const CLOCK = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium' })
const AGO = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
/** @type {readonly (readonly [Intl.RelativeTimeFormatUnit, number])[]} */
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** In the time of this browser. @param {{ at: string | null | undefined }} props */
export function Time({ at }) {
  if (at === null || at === undefined) return html`<span class="null">never</span>`
  const time = new Date(at)
  const seconds = Math.round((time.getTime() - Date.now()) / 1_000)
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return html`<time datetime=${at} title=${AGO.format(Math.trunc(seconds / size), unit)}>${CLOCK.format(time)}</time>`
}

/** @param {number} milliseconds */
export const duration = (milliseconds) =>
  milliseconds < 1
    ? `${milliseconds.toFixed(2)} ms`
    : milliseconds < 1_000
      ? `${Math.round(milliseconds)} ms`
      : `${(milliseconds / 1_000).toFixed(1)} s`

const SIZES = ['B', 'kB', 'MB', 'GB', 'TB']

/** @param {number} count of bytes */
export function bytes(count) {
  const step = count < 1_000 ? 0 : Math.min(SIZES.length - 1, Math.floor(Math.log10(count) / 3))
  return `${new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(count / 1_000 ** step)} ${SIZES[step]}`
}
