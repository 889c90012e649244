/** `from`: where it begins in the whole text. */
export type PlacedStatement = { readonly text: string; readonly from: number }

/**
 * Splits SQL into statements as psql does: at semicolons outside quotes, comments, parentheses and bodies of SQL functions. A wrong split
 * is harmless, because a caller who may send one statement may send any; the server reports syntax errors. Not with libpg-query: parsing a
 * megabyte would block the process for 0.4 s.
 */
export function splitStatements(text: string): readonly PlacedStatement[] {
  const statements: PlacedStatement[] = []
  let start = 0
  let depth = 0
  let words: string[] = []
  let isEmpty = true
  let blocks = 0
  for (const { kind, from, end } of tokens(text)) {
    if (kind !== 'other' || text[from] !== ';') isEmpty = false
    if (kind === 'word') {
      const word = text.slice(from, end).toLowerCase()
      if (words.length < 4) words.push(word)
      if (makesFunction(words)) blocks += blockStep(word, blocks)
    } else if (kind === 'other') {
      const character = text[from]
      if (character === '(') depth++
      else if (character === ')') depth = Math.max(0, depth - 1)
      else if (character === ';' && depth === 0 && blocks === 0) {
        if (!isEmpty) statements.push({ text: text.slice(start, from), from: start })
        start = end
        words = []
        isEmpty = true
      }
    }
  }
  return isEmpty ? statements : [...statements, { text: text.slice(start), from: start }]
}

/** The first word of the statement in lower case, after comments and parentheses. It determines the kind of statement. */
export function firstWord(text: string): string {
  for (const { kind, from, end } of tokens(text)) {
    if (kind === 'word') return text.slice(from, end).toLowerCase()
    if (kind === 'quoted' || text[from] !== '(') return text.slice(from, end)
  }
  return ''
}

/** `create [or replace] function|procedure`, whose body may be `begin atomic …; …; end`. */
const makesFunction = ([first, second, third, fourth]: readonly string[]): boolean =>
  first === 'create' && (isRoutine(second) || (second === 'or' && third === 'replace' && isRoutine(fourth)))

const isRoutine = (word: string | undefined): boolean => word === 'function' || word === 'procedure'

/** `case` ends with `end` too, but counts only inside a body. */
function blockStep(word: string, blocks: number): number {
  if (word === 'begin') return 1
  if (word === 'case' && blocks > 0) return 1
  return word === 'end' && blocks > 0 ? -1 : 0
}

type Token = { readonly kind: 'word' | 'quoted' | 'other'; readonly from: number; readonly end: number }

/** Tokens other than white space and comments. https://www.postgresql.org/docs/18/sql-syntax-lexical.html */
function* tokens(text: string): Generator<Token> {
  let at = 0
  while (at < text.length) {
    const from = at
    const quotedEnd = endOfQuoted(text, at)
    if (quotedEnd !== undefined) {
      at = quotedEnd
      yield { kind: 'quoted', from, end: at }
    } else if (isSpace(text, at)) at++
    else if (text.startsWith('--', at)) at = endOr(text.length, text.indexOf('\n', at))
    else if (text.startsWith('/*', at)) at = endOfComment(text, at)
    else {
      at = endOfWord(text, at)
      const kind = at > from ? 'word' : 'other'
      at = Math.max(at, from + 1)
      yield { kind, from, end: at }
    }
  }
}

const isSpace = (text: string, at: number): boolean => ' \t\n\r\f\v'.includes(text.charAt(at))
const endOr = (otherwise: number, found: number): number => (found < 0 ? otherwise : found)

function endOfWord(text: string, from: number): number {
  WORD.lastIndex = from
  return WORD.test(text) ? WORD.lastIndex : from
}
const WORD = /[\p{L}_\u0080-\uffff][\p{L}\p{N}_$\u0080-\uffff]*|\d[\p{L}\p{N}_.]*/uy

function endOfQuoted(text: string, at: number): number | undefined {
  const first = text.charAt(at)
  if (first === '"') return endOfQuote(text, at, '"', false)
  if (first === "'") return endOfQuote(text, at, "'", false)
  if ((first === 'e' || first === 'E') && text[at + 1] === "'") return endOfQuote(text, at + 1, "'", true)
  if (first !== '$') return undefined
  DOLLAR.lastIndex = at
  const tag = DOLLAR.exec(text)?.[0]
  if (tag === undefined) return undefined
  const end = text.indexOf(tag, at + tag.length)
  return end < 0 ? text.length : end + tag.length
}
const DOLLAR = /\$(?:[\p{L}_\u0080-\uffff][\p{L}\p{N}_\u0080-\uffff]*)?\$/uy

function endOfQuote(text: string, from: number, quote: string, escapes: boolean): number {
  for (let at = from + 1; at < text.length; at++) {
    if (escapes && text[at] === '\\') at++
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1
      at++
    }
  }
  return text.length
}

/** Comments nest. */
function endOfComment(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text.startsWith('/*', at)) depth++
    else if (text.startsWith('*/', at)) depth--
    else continue
    at++
    if (depth === 0) return at + 1
  }
  return text.length
}
