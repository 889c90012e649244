import assert from 'node:assert/strict'

/** The code in the text of a mail. */
export function codeIn(mail: string): string {
  const [, code] = /code is (\d{6})\./.exec(mail.replace(/=\r?\n/g, '')) ?? []
  assert.ok(code, `no code in:\n${mail}`)
  return code
}

/** A code that is none of these. */
export const otherThan = (...codes: readonly string[]): string =>
  ['000000', '111111', '222222', '333333', '444444'].find((code) => !codes.includes(code)) ?? ''
