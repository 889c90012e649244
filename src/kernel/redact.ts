/**
 * Never logged: values of keys that name a secret, and texts that look like a credential, anywhere. Both, because error messages
 * of libraries have no keys.
 */
const SECRET_KEY =
  /pass(word|wd)?|secret|token|authorization|cookie|api[_-]?key|service-key|admin-key|supabase-key|private_?key|^hash$|^((user|device)_?)?code$|^otp$|^url$|connection_?string|^body$/i

const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/\bsvc_[0-9a-f]{16}\.[A-Za-z0-9_-]{20,}/g, '[redacted]'],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, '$1 [redacted]'],
  [/([?&](?:api_key|token|(?:user_|device_)?code|otp|state|apikey)=)[^&\s"]+/gi, '$1[redacted]'],
  // libpq's spelling, in the query of a URL and in a keyword list.
  [/\b(password=)('(?:[^'\\]|\\.)*'|[^\s&"';]+)/gi, '$1[redacted]'],
  // Every token of ours has this form, in paths, cookies and elsewhere.
  [/(?<![\w-])[\w-]{43}(?![\w-])/g, '[redacted]'],
  [/\$(argon2(?:id|i|d)|2[aby]|pbkdf2[a-z0-9-]*|scrypt)\$[^\s"']+/g, '[redacted]'],
  [/\bwhsec_[A-Za-z0-9+/=_-]{8,}/g, '[redacted]'],
]

export function redactText(text: string): string {
  const cleaned = withoutUserinfo(text)
  return SECRET_TEXT.reduce((cleaner, [pattern, instead]) => cleaner.replace(pattern, instead), cleaned)
}

/** `postgres://user:password@host` without user and password. A regular expression would scan the rest of the text at every `://`. */
function withoutUserinfo(text: string): string {
  let cleaned = ''
  let copied = 0
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    const from = at + 3
    if (!/[a-z0-9+.-]/i.test(text.charAt(at - 1))) continue
    if (text[endOf(text, from, '/:@')] !== ':') continue
    const sign = endOf(text, from, '@')
    if (text[sign] === '@') {
      cleaned += `${text.slice(copied, from)}[redacted]`
      copied = sign
    }
    // No later `://` before the sign or the space can be followed by another sign.
    at = sign - 3
  }
  return cleaned + text.slice(copied)
}

/** Position of the first of these characters, or of white space, or the end. */
function endOf(text: string, from: number, signs: string): number {
  let at = from
  while (at < text.length && !signs.includes(text.charAt(at)) && !/\s/.test(text.charAt(at))) at++
  return at
}

/** A copy of a log record without secrets. Cycles and deep nesting end in `[…]`. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (depth > 6) return '[…]'
  if (value instanceof Error) return redactError(value, depth)
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      SECRET_KEY.test(key) && item !== null && item !== undefined && typeof item !== 'boolean'
        ? redactKeyed(key, item)
        : redact(item, depth + 1),
    ]),
  )
}

/** A `code` that names an error: `ECONNREFUSED`, `28P01`, `validation_error`, an exit code. Any other may be a one-time code. */
const ERROR_CODE = /^([A-Z][A-Z0-9_]{2,63}|[0-9A-Z]{5}|[a-z]+(_[a-z]+)+|\d{1,3})$/

function redactKeyed(key: string, item: unknown): unknown {
  if (/^code$/i.test(key) && /^(string|number)$/.test(typeof item) && ERROR_CODE.test(String(item)))
    return item
  if (/^url$/i.test(key) && typeof item === 'string') return redactText(item)
  return '[redacted]'
}

/** Name, message, stack, code, cause and aggregated errors; not the other members that drivers add (parameters, rows, details). */
function redactError(error: Error, depth: number): Record<string, unknown> {
  const { code } = error as { code?: unknown } // any error may carry one
  return {
    type: error.name,
    message: redactText(error.message),
    stack: error.stack === undefined ? undefined : redactText(error.stack),
    ...(typeof code === 'string' ? { code } : {}),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
    ...(error instanceof AggregateError ? { errors: redact(error.errors, depth + 1) } : {}),
  }
}
