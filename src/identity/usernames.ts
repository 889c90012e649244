export type Username = { readonly username: string; readonly displayUsername: string }

/**
 * 3–30 of ASCII letters, digits, `_` and `.`; stored in lower case, shown as it was typed. Undefined when it is none, or
 * when the form to show is another name: it differs by case only, so that nobody is shown as somebody else.
 */
export function usernameFrom(username: string, display: string = username): Username | undefined {
  const stored = username.toLowerCase()
  const isOne = /^[A-Za-z0-9_.]{3,30}$/.test(username) && /^[\x21-\x7e]+$/.test(display)
  return isOne && display.toLowerCase() === stored
    ? { username: stored, displayUsername: display }
    : undefined
}
