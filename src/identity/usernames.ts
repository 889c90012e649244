type Username = { readonly username: string; readonly displayUsername: string }

/**
 * 3–30 ASCII letters, digits, `_` and `.`; stored in lower case, displayed as typed. Undefined for any other text, and when the display
 * form differs by more than case: otherwise one user could be displayed under the name of another.
 */
export function usernameFrom(username: string, display: string = username): Username | undefined {
  const stored = username.toLowerCase()
  const isOne = /^[A-Za-z0-9_.]{3,30}$/.test(username) && /^[\x21-\x7e]+$/.test(display)
  return isOne && display.toLowerCase() === stored
    ? { username: stored, displayUsername: display }
    : undefined
}
