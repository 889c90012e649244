import fc from 'fast-check'
import { ANY_CHARACTER } from './any-character.ts'

/** Names that could break quoting, the gateway's two grammars, JavaScript objects or aliases in statements. */
const HOSTILE_NAMES = [
  'id', 'name', 'Name', 'NAME', 'select', 'table', 'user', 'order', 'group', 'null', 'true', 'default', 'or', 'and', 'not', 'in', 'is', 'eq', 'fts',
  't', 't1', 'r', 'u', 'c0', 'h0', 'e', 'key', 'value', 'count', 'row', 'oid', 'a.b', 'a,b', '(a)', 'a:b', 'a::text', 'a!b', 'a as b', 'as', '*',
  't.*', '.', ',', '"', '""', '"a"', "'", "''", '\\', '\\"', '`', '%', '_', '$1', '$$', '?', ';', '--', '/*', '*/', '#', '@>', '=', '<>', '~', '|', '&&',
  '"; drop table canary; --', `'; drop table canary; --`, 'x"); delete from canary; --', 'count(*)', 'now()', 'pg_sleep(1)', 'eq.1', 'not.eq.1',
  'or(a.eq.1)', 'a desc', 'a nulls first', ' ', ' a', 'a ', 'a b', '\t', '\n', 'a\r\nb', '\u0001', '\u007f', '\u00a0', '\u200b', '\u202e', '\ufeff',
  'ü', 'u\u0308', 'ﬀ', 'İ', 'ß', 'Ω', '名前', 'имя', '😀', '👩‍👩‍👧', '\u{10ffff}', '1', '01', '-1', '1e3', 'constructor', 'toString', 'hasOwnProperty',
  'valueOf', 'length', 'then', 'toJSON', '{a}', '[a]', '{"a":1}', 'a->b', "a->>'b'", 'a'.repeat(63), '"'.repeat(63), 'ü'.repeat(31), '😀'.repeat(15),
] as const // biome-ignore format: a table

/** System columns of every table. */
const SYSTEM = new Set(['tableoid', 'xmin', 'xmax', 'cmin', 'cmax', 'ctid'])

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Text that PostgreSQL can store, from all Unicode planes. */
export const text = (maxLength: number) =>
  fc
    .oneof(
      fc.string({ unit: ANY_CHARACTER, maxLength }),
      fc.string({ unit: 'grapheme', maxLength: Math.ceil(maxLength / 3) }),
      fc.string({ unit: fc.constantFrom(...'aAbBzZéÉ%_\\"\'*{},() \n😀ß'), maxLength }),
      fc.constantFrom(
        '',
        ' ',
        'null',
        'NULL',
        '%',
        '_',
        '\\',
        "'",
        '"',
        '{}',
        '()',
        '😀',
        'e\u0301',
        '\ufeff',
        'a\\',
        "'; drop table canary; --",
      ),
    )
    .map((value) => [...value].slice(0, maxLength).join(''))
    .filter(isStorable)

export const identifier = fc
  .oneof(
    { weight: 3, arbitrary: fc.constantFrom(...HOSTILE_NAMES) },
    { weight: 1, arbitrary: text(20) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: fc.constantFrom(...'ab.,():"\\*! '), minLength: 1, maxLength: 8 }),
    },
  )
  .filter((name) => name !== '' && Buffer.byteLength(name) <= 63 && !SYSTEM.has(name) && name !== '__proto__')
