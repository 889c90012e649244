export type Mask = (text: string) => string

/** Shorter texts occur in any message. */
const SHORTEST = 8

/** Removes a key, and its parts between dots, from messages of a backend, also percent-encoded. */
export function createMask(key: string | undefined): Mask {
  const parts = [key ?? '', ...(key ?? '').split('.')].flatMap((part) => [part, encodeURIComponent(part)])
  const secrets = [...new Set(parts)]
    .filter((part) => part.length >= SHORTEST)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
