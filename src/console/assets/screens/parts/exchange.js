import { useEffect, useRef, useState } from 'preact/hooks'
import { exchange, parse } from '../../api.js'
import { Mark } from '../../controls.js'
import { useAct } from '../../hooks.js'
import { html } from '../../html.js'
import { countOf, duration, Value } from '../../values.js'

/**
 * @typedef {{ status: number, reason: string, headers: readonly (readonly [string, string])[], milliseconds: number, text: string, isOpen: boolean }} Answer
 * `isOpen`: more of its body may come.
 * @typedef {Parameters<typeof exchange>[1]} Asked
 */

/** Characters of a body that are read. The rest is left to programs. */
const MOST = 400_000

/** One request at a time, with its answer. It ends with the component, or by `stop`. */
export function useExchange() {
  const [answer, setAnswer] = useState(/** @type {Answer | undefined} */ (undefined))
  const { run, isBusy, failure } = useAct()
  const last = useRef(/** @type {AbortController | undefined} */ (undefined))
  const stop = () => last.current?.abort()
  useEffect(() => stop, [])
  const send = (/** @type {string} */ address, /** @type {Asked} */ asked) =>
    run(async () => {
      const aborting = new AbortController()
      const { signal } = aborting
      last.current = aborting
      setAnswer(undefined)
      const began = performance.now()
      const read = async (/** @type {Response} */ response) => {
        const { status, statusText: reason, headers } = response
        const head = { status, reason, headers: [...headers], milliseconds: performance.now() - began }
        const text = await readText(response, (text) => setAnswer({ ...head, text, isOpen: true }))
        setAnswer({ ...head, milliseconds: performance.now() - began, text, isOpen: false })
      }
      await exchange(address, { ...asked, signal }, read).catch((error) => {
        if (!signal.aborted) throw error
      })
    })
  return { answer, isBusy, failure, send, stop }
}

/** The body as far as it came, and was asked for. @param {Response} response @param {(text: string) => void} onPart */
async function readText(response, onPart) {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  onPart(text)
  try {
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true })
      onPart(text)
      if (text.length > MOST) await reader?.cancel()
    }
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) throw error
  }
  return text
}

/** @param {{ of: Answer | undefined }} props */
export function Answer({ of: answer }) {
  if (answer === undefined) return null
  const { status, reason, headers, milliseconds, text, isOpen } = answer
  const tone = status < 300 ? 'good' : status < 500 ? 'warn' : 'bad'
  return html`<section class="answer" aria-label="Answer">
    <p class="row" role="status"><${Mark} tone=${tone}>${status} ${reason}<//> <span>${duration(milliseconds)}</span>
      <span class="soft">${countOf(text.length, 'character')}</span></p>
    ${isOpen && html`<p class="soft">The answer goes on …</p>`}
    <details><summary>${countOf(headers.length, 'header')}</summary>
      <dl class="headers">${headers.map(([name, value]) => html`<div><dt><code>${name}</code></dt><dd><${Value} value=${value} most=${2_000} /></dd></div>`)}</dl>
    </details>
    <pre tabindex="0" role="region" aria-label="Body of the answer"><${Value} value=${isOpen ? text : readable(answer)} most=${50_000} /></pre>
  </section>`
}

/** JSON on several lines, with every digit. @param {Answer} answer */
function readable({ headers, text }) {
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? ''
  if (!type.includes('json') || text.length > MOST) return text
  try {
    return JSON.stringify(parse(text), null, 2)
  } catch {
    return text
  }
}

/** For a shell: nothing in single quotes means something. @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * The request as a line of curl. `credential`: a header whose value the shell knows, or none.
 * @param {{ method: string, address: string, headers: Readonly<Record<string, string>>, text?: string | undefined, credential?: string | undefined }} request
 */
export const curlOf = ({ method, address, headers, text, credential }) =>
  [
    `curl -i${method === 'GET' ? '' : ` -X ${method}`} ${quoted(location.origin + address)}`,
    ...(credential === undefined ? [] : [`-H "${credential}"`]),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(text === undefined ? [] : [`--data-raw ${quoted(text)}`]),
  ].join(' \\\n  ')

/** @param {{ text: string }} props */
export const Curl = ({ text }) => html`<section class="curl" aria-label="The request for a shell">
  <pre tabindex="0" role="region" aria-label="Line of curl"><${Value} value=${text} most=${20_000} /></pre>
  <p><${Copy} text=${text} /></p>
</section>`

/** @param {{ text: string, label?: string, class?: string }} props */
function Copy({ text, label = 'Copy', class: name }) {
  const [said, setSaid] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setSaid('Copied')
    } catch {
      // There is no clipboard without https, or it was refused.
      setSaid('Select the text and copy it by keyboard')
    }
  }
  return html`<button type="button" class=${name} onClick=${copy}>${label}</button> <span role="status" class="soft">${said}</span>`
}
