import { Field, take } from '../../controls.js'
import { html } from '../../html.js'

/** @typedef {{ choice: string, day: string, instant: () => string | null }} Until */

const DAY = 86_400_000

/** Days from now. @type {readonly (readonly [string, string])[]} */
const CHOICES = [
  ['', 'Never'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In a year'],
  ['day', 'At the beginning of a day'],
]

/** What is chosen, as the instant that it means when the form is sent. @param {string} choice @param {string} day @returns {Until} */
const untilOf = (choice, day) => ({
  choice,
  day,
  instant() {
    if (choice === '') return null
    if (choice !== 'day') return new Date(Date.now() + Number(choice) * DAY).toISOString()
    const date = new Date(`${day}T00:00:00`)
    return Number.isNaN(date.getTime()) ? null : date.toISOString()
  },
})

/** An instant that stays as it is until another one is chosen. @param {string | null} at @returns {Until} */
export const expiryOf = (at) =>
  at === null ? untilOf('', '') : { choice: 'day', day: dayOf(new Date(at)), instant: () => at }

/** In the time of this browser. @param {Date} date */
const dayOf = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-')

/** @param {{ until: Until, onChange: (until: Until) => void }} props */
export const Expiry = ({ until: { choice, day }, onChange }) => html`<${Field} label="Expires" value=${choice}
    onChange=${take((next) => onChange(untilOf(next, day === '' ? dayOf(new Date(Date.now() + 30 * DAY)) : day)))}>
    ${CHOICES.map(([value, title]) => html`<option value=${value}>${title}</option>`)}
  <//>
  ${
    choice === 'day' &&
    html`<${Field} label="Day" type="date" required value=${day} onInput=${take((next) => onChange(untilOf('day', next)))} />`
  }`
