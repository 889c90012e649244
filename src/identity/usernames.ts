export type Username = { readonly username: string; readonly displayUsername: string }

/** 3–30 of letters, digits, `_` and `.`; stored in lower case, shown as it was typed. Undefined when it is none. */
export function usernameFrom(username: string, display: string = username): Username | undefined {
  const stored = username.normalize('NFKC').toLowerCase()
  return /^[\p{L}\p{N}_.]{3,30}$/u.test(stored) ? { username: stored, displayUsername: display } : undefined
}
