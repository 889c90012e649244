import { fail } from '#databases/failures.ts'
import type { ColumnTerm, RelationTerm } from '#databases/request/request.ts'
import { atEnd, eat, peek, quoted, type Scanner, scan, skipSpace, until } from '#databases/request/scanner.ts'

/**
 * The grammar of `columns` (gateway.md 4), a list or one text with commas:
 *
 *   column   = "*" | [ alias ":" ] path [ "::" type ] [ "as" alias ]
 *   relation = [ alias ":" ] path [ "!" constraint ] "(" column { "," column } ")"
 *   path     = name { "." name }            names with other characters in double quotes
 *
 * A path of several names ends with the column; the names before it must be the table that is read (`owner` checks this).
 */
export function parseColumns(columns: string | readonly string[], options: ColumnOptions): ColumnTerm[] {
  const budget = { left: options.columns }
  if (typeof columns === 'string') return parseList(columns, options, budget)
  return columns.flatMap((text) => parseList(text, options, budget))
}

export type ColumnOptions = {
  readonly columns: number
  readonly nesting: number
  readonly rename: (column: string) => string
  /** Whether `schema.table.` or `table.` before a column means the table that is read. */
  readonly owner: (path: readonly string[]) => boolean
}

type Budget = { left: number }

function parseList(text: string, options: ColumnOptions, budget: Budget): ColumnTerm[] {
  const scanner = scan(text)
  const terms = readList(scanner, options, budget)
  if (!atEnd(scanner)) throw unexpected(scanner)
  return terms
}

function readList(scanner: Scanner, options: ColumnOptions, budget: Budget): ColumnTerm[] {
  if (options.nesting < 0) throw fail('too_deep', { details: { field: 'columns' } })
  const terms: ColumnTerm[] = []
  do {
    skipSpace(scanner)
    if (--budget.left < 0)
      throw fail('too_many_columns', { details: { field: 'columns', maximum: options.columns } })
    terms.push(readColumn(scanner, options, budget))
    skipSpace(scanner)
  } while (eat(scanner, ','))
  return terms
}

function readColumn(scanner: Scanner, options: ColumnOptions, budget: Budget): ColumnTerm {
  if (eat(scanner, '*')) return { kind: 'all' }
  const first = readName(scanner)
  const aliased = peek(scanner) === ':' && scanner.text.charAt(scanner.at + 1) !== ':'
  if (aliased) scanner.at++
  const path = readPath(scanner, aliased ? readName(scanner) : first)
  if (eat(scanner, '.*')) {
    if (aliased) throw unexpected(scanner)
    if (!options.owner(path)) throw foreign([...path, '*'])
    return { kind: 'all' }
  }
  const hint = eat(scanner, '!') ? readName(scanner) : undefined
  if (eat(scanner, '('))
    return readRelation(scanner, options, budget, path, hint, aliased ? first : undefined)
  if (hint !== undefined) throw unexpected(scanner)
  const cast = eat(scanner, '::') ? readType(scanner) : undefined
  const alias = aliased ? first : readAs(scanner)
  const name = path.at(-1) ?? ''
  if (path.length > 1 && !options.owner(path.slice(0, -1))) throw foreign(path)
  return {
    kind: 'column',
    name: options.rename(name),
    ...(alias && { alias }),
    ...(cast !== undefined && { cast }),
  }
}

/** A type may be several words (`timestamp with time zone`); `as` ends it. */
function readType(scanner: Scanner): string {
  const words: string[] = []
  while (!atEnd(scanner) && !',()'.includes(peek(scanner)) && !beforeAs(scanner)) {
    words.push(until(scanner, ',() '))
    skipSpace(scanner)
  }
  return words.join(' ')
}

const beforeAs = (scanner: Scanner): boolean => /^as\s/i.test(scanner.text.slice(scanner.at, scanner.at + 3))

function readRelation(
  scanner: Scanner,
  options: ColumnOptions,
  budget: Budget,
  path: readonly string[],
  hint: string | undefined,
  alias: string | undefined,
): RelationTerm {
  const inner = { ...options, nesting: options.nesting - 1, owner: () => false }
  const columns = readList(scanner, inner, budget)
  if (!eat(scanner, ')') || path.length > 2) throw unexpected(scanner)
  const [name = '', schema] = [...path].reverse()
  return {
    kind: 'relation',
    name,
    ...(schema && { schema }),
    ...(hint && { hint }),
    ...(alias && { alias }),
    columns,
  }
}

/** `column as alias`. */
function readAs(scanner: Scanner): string | undefined {
  skipSpace(scanner)
  if (!beforeAs(scanner)) return undefined
  scanner.at += 2
  skipSpace(scanner)
  return readName(scanner)
}

function readPath(scanner: Scanner, first: string): string[] {
  const path = [first]
  while (!scanner.text.startsWith('.*', scanner.at) && eat(scanner, '.')) path.push(readName(scanner))
  return path
}

function readName(scanner: Scanner): string {
  const name = eat(scanner, '"') ? quoted(scanner) : until(scanner, '.,():!* \t\n')
  if (!name) throw unexpected(scanner)
  return name
}

const foreign = (path: readonly string[]) =>
  fail('unknown_column', {
    message: `Column ${path.join('.')} does not belong to the table that is read`,
    hint: 'Ask for columns of another table as a relation: relation(column, …).',
    details: { column: path.join('.') },
  })

const unexpected = (scanner: Scanner) =>
  fail('invalid_columns', {
    hint: 'Columns look like name, alias:name, name as alias, name::type or relation(name, …), separated by commas.',
    details: { field: 'columns', position: scanner.at },
  })
