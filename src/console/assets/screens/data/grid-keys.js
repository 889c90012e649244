import { useEffect, useRef } from 'preact/hooks'

/**
 * Whether an element, or one in it, has the focus, or has lost it as the page has moved or removed something. Not when a person has put it
 * elsewhere.
 * @param {{ current: Element | null }} element
 */
export function useHadFocus(element) {
  const had = useRef(false)
  useEffect(() => {
    const isWithin = (/** @type {Event} */ { target }) =>
      target instanceof Node && element.current?.contains(target) === true
    const focus = (/** @type {Event} */ event) => {
      had.current = isWithin(event)
    }
    const press = (/** @type {Event} */ event) => {
      had.current &&= isWithin(event)
    }
    addEventListener('focusin', focus)
    addEventListener('pointerdown', press)
    return () => {
      removeEventListener('focusin', focus)
      removeEventListener('pointerdown', press)
    }
  }, [])
  return had
}

/**
 * Moves within a grid by its keys.
 * @param {KeyboardEvent} event
 * @param {{ row: number, column: number }} at
 * @param {{ rows: number, columns: number }} size
 * @returns {{ row: number, column: number } | undefined}
 */
export function moveBy({ key, ctrlKey, metaKey, altKey }, { row, column }, { rows, columns }) {
  if (altKey) return undefined
  const isFar = ctrlKey || metaKey
  const last = { row: rows - 1, column: columns - 1 }
  const within = (/** @type {number} */ to, /** @type {number} */ most) => Math.max(0, Math.min(most, to))
  switch (key) {
    case 'ArrowUp':
      return { row: isFar ? 0 : within(row - 1, last.row), column }
    case 'ArrowDown':
      return { row: isFar ? last.row : within(row + 1, last.row), column }
    case 'ArrowLeft':
      return { row, column: isFar ? 0 : within(column - 1, last.column) }
    case 'ArrowRight':
      return { row, column: isFar ? last.column : within(column + 1, last.column) }
    case 'Home':
      return { row: isFar ? 0 : row, column: 0 }
    case 'End':
      return { row: isFar ? last.row : row, column: last.column }
    case 'PageUp':
      return { row: within(row - 10, last.row), column }
    case 'PageDown':
      return { row: within(row + 10, last.row), column }
    default:
      return undefined
  }
}

/** @param {KeyboardEvent} event */
export const isModified = ({ ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey
