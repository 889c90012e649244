import { fail } from '#databases/failures.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'

type Token = { readonly kind: 'word' | 'quoted' | 'other'; readonly text: string }

/** What is neither white space nor comment; the text of a string is nobody's business. https://cassandra.apache.org/doc/5.0/cassandra/developing/cql/definitions.html */
function tokensOf(text: string): Token[] {
  return [...text.matchAll(lexer)].flatMap(({ groups = {} }): Token[] => {
    const { name, quoted, other } = groups
    if (name !== undefined) return [{ kind: 'word', text: name.toLowerCase() }]
    if (quoted !== undefined) return [{ kind: 'quoted', text: quoted.slice(1, -1).replaceAll('""', '"') }]
    return other === undefined ? [] : [{ kind: 'other', text: other }]
  })
}

/** What is not closed goes to the end, so that nothing behind it is taken for more than it is. */
const lexer =
  /(?:--|\/\/)[^\n\r]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|\$\$[\s\S]*?(?:\$\$|$)|(?<quoted>"(?:[^"]|"")*(?:"|$))|(?<name>[A-Za-z][A-Za-z0-9_]*)|(?<other>[^\s])/g

/** Statements about data and about structure. Not USE, which would change a connection for others, and nothing about roles. */
const words = new Set([
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
const structures = new Set(
  'table columnfamily index custom type materialized function aggregate keyspace or'.split(' '),
)

/**
 * What may be sent of the caller's own text. The server takes one statement a time; which one, its first words tell. Keyspaces
 * of the server hold its roles and their hashes, and are named by nobody who comes through the gateway.
 */
export function requireAllowed(
  text: string,
  readOnly: boolean,
): { readonly isRead: boolean; readonly changesStructure: boolean } {
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
  if (!words.has(word) || (changesStructure && !structures.has(second?.text ?? '')))
    throw fail('not_supported', {
      message: 'This statement is not possible here',
      hint: `Statements begin with one of: ${[...words].join(', ')}.`,
    })
  if (
    tokens.some((token, index) => token.kind !== 'other' && isSystem(token.text) && isKeyspace(tokens, index))
  )
    throw fail('permission_denied', { message: 'The keyspaces of the server are not for its clients' })
  return { isRead: word === 'select', changesStructure }
}

/** `system.local`, `drop keyspace system`, `alter keyspace if exists system`. */
function isKeyspace(tokens: readonly Token[], index: number): boolean {
  if (tokens[index + 1]?.text === '.') return true
  return tokens.slice(0, index).every(({ kind }) => kind === 'word') && tokens[1]?.text === 'keyspace'
}
