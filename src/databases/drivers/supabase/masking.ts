export type Mask = (text: string) => string

/** Shorter texts stand in any sentence. */
const SHORTEST = 8

/** Leaves a key, and its parts between dots, out of what a backend says of it: also in the spelling of addresses. */
export function masking(key: string | undefined): Mask {
  const parts = [key ?? '', ...(key ?? '').split('.')].flatMap((part) => [part, encodeURIComponent(part)])
  const secrets = [...new Set(parts)]
    .filter((part) => part.length >= SHORTEST)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text)
}
