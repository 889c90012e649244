import fc from 'fast-check'
import { ANY_CHARACTER } from '#test/property/any-character.ts'

/** Generates URLs from pieces that parsers read differently. `hosts` are our own and foreign hosts, with ports. */
export function anyTarget(hosts: readonly string[]): fc.Arbitrary<string> {
  const beginnings = ['', '/', '/', '/', '//', '/.', '/..', '/x', ...hosts.flatMap(beginningsAt)]
  return fc
    .tuple(
      fc.constantFrom(...beginnings),
      fc.array(fc.constantFrom(...PIECES, ...hosts), { maxLength: 7 }),
      fc.oneof({ weight: 5, arbitrary: fc.constant('') }, fc.string({ unit: ANY_CHARACTER, maxLength: 4 })),
    )
    .map(([beginning, pieces, end]) => `${beginning}${pieces.join('')}${end}`)
}

/** Paths with query and fragment that every parser reads in one way, below no endpoint of the service. */
export const goodPath: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(fc.stringMatching(/^[\w~@:=*][\w.~@:=*-]{0,9}$/), { maxLength: 4 }),
    fc.constantFrom('', '?', '?next=//evil.example', '?a=b&a=%2f'),
    fc.constantFrom('', '#', '#/a', '#@evil.example'),
  )
  .map(([segments, query, fragment]) => `${['/app', ...segments].join('/')}${query}${fragment}`)

const beginningsAt = (host: string): readonly string[] => [
  `http://${host}`,
  `https://${host}`,
  `http://${host}/`,
  `https://${host}/`,
  `https:${host}`,
  `https:/${host}`,
  `https://user@${host}`,
  `ws://${host}`,
]

const PIECES = [
  '/', '/', '//', '\\', '.', '..', './', '../', '/.', '/..', '%2e', '%2E', '%2e%2e', '.%2e', '%2f', '%2F', '%5c', '%5C', '%09', '%0a',
  '%0d%0a', '%00', '%20', '%', '%25', '%252e', '%252f', '\t', '\n', '\r', '\0', '\v', ' ', '\u00a0', '\u200b', '\ufeff', '@', 'user:pass@',
  ':', ':80', ':443', ':8443', '?', '#', '&', '=', ';', '*', 'x', 'welcome', '?next=', '?token=', '#a', 'http:', 'https:', 'http://',
  'https://', 'javascript:', 'data:', 'blob:', 'file:', '[::1]', '127.0.0.1', '0x7f.1', 'xn--80ak6aa92e.com', 'é', '\u0430', '\u3002',
  '\uff0e', '\uff0f', '\u2044', '\u2215', '\uff3c', '\u00ad', 'null', '~', '|', '^', '`', '<', '"',
] as const // biome-ignore format: a table
