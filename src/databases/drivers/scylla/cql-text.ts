import { fail } from '#databases/failures.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'

type Token = { readonly kind: 'word' | 'quoted' | 'other'; readonly text: string }

/**
 * Tokens other than white space and comments; the content of strings is skipped.
 * https://cassandra.apache.org/doc/5.0/cassandra/developing/cql/definitions.html
 */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < text.length; ) {
    const end = endOfSilence(text, at) ?? endOfToken(text, at)
    const token = tokenAt(text, at, end)
    if (token !== undefined) tokens.push(token)
    at = end
  }
  return tokens
}

function tokenAt(text: string, from: number, end: number): Token | undefined {
  const first = text.charAt(from)
  if (isLetter(first)) return { kind: 'word', text: text.slice(from, end).toLowerCase() }
  if (first === '"') return { kind: 'quoted', text: text.slice(from + 1, end - 1).replaceAll('""', '"') }
  return endOfSilence(text, from) === undefined ? { kind: 'other', text: first } : undefined
}

/** The end of white space, a comment or a string. Unclosed ones reach to the end, so that nothing after them counts as code. */
function endOfSilence(text: string, at: number): number | undefined {
  if (isSpace(text.charAt(at))) return at + 1
  if (text.startsWith('--', at) || text.startsWith('//', at)) return endOfLine(text, at)
  if (text.startsWith('/*', at)) return after(text, '*/', at + 2)
  if (text.startsWith('$$', at)) return after(text, '$$', at + 2)
  return text[at] === "'" ? endOfQuoted(text, at) : undefined
}

function endOfToken(text: string, from: number): number {
  if (text[from] === '"') return endOfQuoted(text, from)
  let end = from + 1
  if (isLetter(text.charAt(from))) while (/[A-Za-z0-9_]/.test(text.charAt(end))) end++
  return end
}

/** A doubled quote is part of the text. */
function endOfQuoted(text: string, from: number): number {
  const quote = text.charAt(from)
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] !== quote) continue
    if (text[at + 1] !== quote) return at + 1
    at++
  }
  return text.length
}

function endOfLine(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '\n' && text[at] !== '\r') at++
  return at
}

function after(text: string, ending: string, from: number): number {
  const found = text.indexOf(ending, from)
  return found < 0 ? text.length : found + ending.length
}

const isSpace = (character: string): boolean => /\s/.test(character)
const isLetter = (character: string): boolean => /[A-Za-z]/.test(character)

/**
 * First keywords of the statements that callers may run. USE is missing because it would change the connection of other callers.
 * STRUCTURE_KEYWORDS, the second keywords of create, alter and drop, exclude roles.
 */
const STATEMENT_KEYWORDS = new Set([
  'select',
  'insert',
  'update',
  'delete',
  'begin',
  'truncate',
  'create',
  'alter',
  'drop',
])
const STRUCTURE_KEYWORDS = new Set(
  'table columnfamily index custom type materialized function aggregate keyspace or'.split(' '),
)

/**
 * Checks the caller's own text. The server takes one statement at a time, and its first words determine its kind. The server's keyspaces
 * have its roles and their hashes, so callers must not name them.
 */
export function requireAllowed(
  text: string,
  readOnly: boolean,
): { readonly isRead: boolean; readonly changesStructure: boolean; readonly lookUps: number } {
  const tokens = tokensOf(text)
  const [first, second] = tokens
  if (first === undefined) throw fail('invalid_sql', { hint: 'The text contains no statement.' })
  const word = first.kind === 'word' ? first.text : ''
  if (readOnly && word !== 'select')
    throw fail('read_only', {
      message: 'Only statements that read are possible here',
      hint: 'One statement that begins with select.',
    })
  const changesStructure = word === 'create' || word === 'alter' || word === 'drop'
  if (!STATEMENT_KEYWORDS.has(word) || (changesStructure && !STRUCTURE_KEYWORDS.has(second?.text ?? '')))
    throw fail('not_supported', {
      message: 'This statement is not possible here',
      hint: `Statements begin with one of: ${[...STATEMENT_KEYWORDS].join(', ')}.`,
    })
  if (namesSystem(tokens))
    throw fail('permission_denied', { message: 'The keyspaces of the server are not for its clients' })
  return { isRead: word === 'select', changesStructure, lookUps: lookUpsOf(tokens) }
}

/** `system.local`, `drop keyspace system`, `alter keyspace if exists system`. */
function namesSystem(tokens: readonly Token[]): boolean {
  const firstOther = tokens.findIndex(({ kind }) => kind !== 'word')
  const words = firstOther < 0 ? tokens.length : firstOther
  const isAboutKeyspace = tokens[1]?.text === 'keyspace'
  return tokens.some(
    ({ kind, text }, index) =>
      kind !== 'other' &&
      isSystem(text) &&
      (tokens[index + 1]?.text === '.' || (isAboutKeyspace && index <= words)),
  )
}

/** Combinations of the values of `in (…)` lists; for a batch, the largest of its statements. Values of `in ?` are in the parameters. */
function lookUpsOf(tokens: readonly Token[]): number {
  let [max, product] = [1, 1]
  const open: { readonly isList: boolean; commas: number }[] = []
  for (const [index, { kind, text }] of tokens.entries()) {
    if (kind === 'word' && BEGINNINGS.has(text)) product = 1
    if (kind !== 'other') continue
    if ('([{'.includes(text)) open.push({ isList: isIn(tokens[index - 1]), commas: 0 })
    const inner = open.at(-1)
    if (inner === undefined) continue
    if (text === ',') inner.commas++
    if (!')]}'.includes(text)) continue
    open.pop()
    if (inner.isList) product *= inner.commas + 1
    max = Math.max(max, product)
  }
  return max
}

const isIn = (token: Token | undefined): boolean => token?.kind === 'word' && token.text === 'in'
const BEGINNINGS: ReadonlySet<string> = new Set(['insert', 'update', 'delete'])
