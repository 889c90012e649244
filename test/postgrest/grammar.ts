/**
 * Parser of PostgREST's URL grammar, written from its documentation (URL grammar, tables and views, resource embedding) for the endpoint
 * of these tests. It shares no code with the driver that writes these URLs.
 */

export type Item =
  | { readonly kind: 'star' }
  | { readonly kind: 'column'; readonly name: string; readonly alias?: string; readonly cast?: string }
  | {
      readonly kind: 'embed'
      readonly target: string
      readonly alias?: string
      readonly hint?: string
      readonly items: readonly Item[]
    }

export type Logic =
  | {
      readonly kind: 'group'
      readonly not: boolean
      readonly word: 'and' | 'or'
      readonly terms: readonly Logic[]
    }
  | {
      readonly kind: 'filter'
      readonly field: string
      readonly not: boolean
      readonly operator: string
      readonly value: string | readonly string[]
    }

export type Order = { readonly field: string; readonly words: string }

/** A parse error, which PostgREST reports as PGRST100. */
export class GrammarError extends Error {}

type Text = { readonly text: string; at: number }

export const parseSelect = (text: string): Item[] => wholly(text, items)
export const parseNames = (text: string): string[] => wholly(text, (from) => separated(from, name))
export const parseOrder = (text: string): Order[] => wholly(text, (from) => separated(from, order))
/** `and` or `or`, and the text after the equals sign. */
export const parseLogic = (word: string, text: string): Logic => wholly(`${word}${text}`, logic)
/** The value of a column's filter, for example `eq.5`. */
export const parseFilter = (field: string, text: string): Logic =>
  wholly(text, (from) => operation(from, field, () => rest(from, /^.*/s)))

function wholly<T>(text: string, read: (from: Text) => T): T {
  const from = { text, at: 0 }
  const result = read(from)
  if (from.at < text.length) throw new GrammarError(`unexpected ${text.slice(from.at, from.at + 20)}`)
  return result
}

const ahead = (from: Text, pattern: RegExp): RegExpExecArray | null => pattern.exec(from.text.slice(from.at))

function eat(from: Text, text: string): boolean {
  if (!from.text.startsWith(text, from.at)) return false
  from.at += text.length
  return true
}

function need(from: Text, text: string): void {
  if (!eat(from, text)) throw new GrammarError(`expecting ${text} at ${from.at}`)
}

function rest(from: Text, pattern: RegExp): string {
  const [found = ''] = ahead(from, pattern) ?? []
  from.at += found.length
  return found
}

function separated<T>(from: Text, read: (from: Text) => T): T[] {
  const all = [read(from)]
  while (eat(from, ',')) all.push(read(from))
  return all
}

function name(from: Text): string {
  if (from.text[from.at] === '"') return quoted(from)
  const found = rest(from, /^[\p{L}\p{N}_ $]+(-(?!>)[\p{L}\p{N}_ $]+)*/u).trim()
  if (found === '') throw new GrammarError(`expecting field name at ${from.at}`)
  return found
}

function quoted(from: Text): string {
  const text = rest(from, /^"(?:[^"\\]|\\.)*"/s)
  if (text === '') throw new GrammarError('an unterminated quote')
  return text.slice(1, -1).replace(/\\(.)/gs, '$1')
}

const items = (from: Text): Item[] => separated(from, item)

function item(from: Text): Item {
  if (eat(from, '*')) return { kind: 'star' }
  const first = name(from)
  const aliased = ahead(from, /^:(?!:)/) !== null
  if (aliased) from.at++
  const target = aliased ? name(from) : first
  const alias = aliased ? { alias: first } : {}
  let hint: string | undefined
  while (eat(from, '!')) if (!eat(from, 'left') && !eat(from, 'inner')) hint = name(from)
  if (eat(from, '(')) {
    const inner = items(from)
    need(from, ')')
    return { kind: 'embed', target, ...alias, ...(hint !== undefined && { hint }), items: inner }
  }
  if (hint !== undefined) throw new GrammarError('a hint without a relation')
  const cast = eat(from, '::') ? rest(from, /^[\p{L}\p{N}_ $]+/u).trim() : undefined
  if (ahead(from, /^($|[,)])/) === null) throw new GrammarError(`unexpected ${from.text.slice(from.at)}`)
  return { kind: 'column', name: target, ...alias, ...(cast !== undefined && { cast }) }
}

function order(from: Text): Order {
  const field = name(from)
  const words = rest(from, /^(\.(asc|desc))?(\.(nullsfirst|nullslast))?/)
  if (ahead(from, /^($|,)/) === null) throw new GrammarError(`unexpected ${from.text.slice(from.at)}`)
  return { field, words: words.replaceAll('.', ' ').replace('nulls', 'nulls ') }
}

function logic(from: Text): Logic {
  const group = ahead(from, /^(not\.)?(and|or)\(/)
  if (group === null) {
    const field = name(from)
    need(from, '.')
    return operation(from, field, () => single(from))
  }
  from.at += group[0].length
  const terms = separated(from, logic)
  need(from, ')')
  return { kind: 'group', not: group[1] !== undefined, word: group[2] === 'or' ? 'or' : 'and', terms }
}

function operation(from: Text, field: string, read: () => string): Logic {
  const not = eat(from, 'not.')
  const operator = rest(from, /^[^.(]+/)
  need(from, '.')
  const value = operator === 'in' ? list(from) : read()
  return { kind: 'filter', field, not, operator, value }
}

function single(from: Text): string {
  if (ahead(from, /^"(?:[^"\\]|\\.)*"($|[,)])/s)) return quoted(from)
  return ahead(from, /^\{[^{}]*\}/) ? rest(from, /^\{[^{}]*\}/) : rest(from, /^[^,)]*/)
}

function list(from: Text): string[] {
  need(from, '(')
  const values = separated(from, single)
  need(from, ')')
  // Like PostgREST, which therefore cannot search for a single empty text.
  return values.length === 1 && values[0] === '' ? [] : values
}
