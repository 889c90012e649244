/**
 * The text of a key on its way from the form that made it to the page that shows it, once.
 * @type {{ id: string, text: string } | undefined}
 */
let issued

/** @param {string} id @param {string} text */
export function keepSecret(id, text) {
  issued = { id, text }
}

/** It is forgotten here. @param {string} id */
export function takeSecret(id) {
  const text = issued?.id === id ? issued.text : undefined
  issued = undefined
  return text
}
