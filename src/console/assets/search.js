import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { goWith } from './router.js'
import { take } from './sign-in.js'

/**
 * The field of a list that searches when one stops typing. What it searches for is in the address, without what `clean` takes out.
 * @param {{ search: string, placeholder: string, clean?: (text: string) => string }} props
 */
export function Search({ search, placeholder, clean = (text) => text }) {
  const [text, setText] = useState(search)
  const input = useRef(/** @type {HTMLInputElement | null} */ (null))
  // The address has changed otherwise than by typing.
  useEffect(() => {
    if (document.activeElement !== input.current) setText(search)
  }, [search])
  useEffect(() => {
    if (text === search) return
    const waiting = setTimeout(() => goWith({ search: text, offset: undefined }, { replaces: true }), 250)
    return () => clearTimeout(waiting)
  }, [text, search])
  return html`<label>Search <input type="search" ref=${input} placeholder=${placeholder} value=${text} onInput=${take((typed) => setText(clean(typed)))} /></label>`
}
