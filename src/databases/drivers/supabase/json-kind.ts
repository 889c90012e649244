import { isUtf8 } from 'node:buffer'
import { startTimeSlice } from '#kernel/time-slice.ts'

/** The outer kind of a JSON text. Rows: an array of objects, also an empty one. */
export type JsonKind =
  | { readonly kind: 'rows'; readonly count: number }
  | { readonly kind: 'object' | 'list' | 'value' | 'null' }

/**
 * The kind of a text, undefined when it is not JSON (RFC 8259). It builds no values, and reading large texts yields to other work, because
 * a foreign backend determines the size of an answer.
 */
export async function jsonKind(bytes: Buffer): Promise<JsonKind | undefined> {
  if (!isUtf8(bytes)) return undefined
  const check = new JsonCheck(bytes)
  const slice = startTimeSlice()
  while (check.goOn(SLICE)) if (slice.isOver()) await slice.next()
  return check.kind()
}

/** Bytes between two checks of the clock. */
const SLICE = 65_536
/** The deepest nesting. PostgreSQL writes at most about 6,000 levels before its stack is full. */
const MAX_DEPTH = 10_000
const MAX_NUMBER_LENGTH = 262_144

const code = (sign: string): number => sign.charCodeAt(0)
const [QUOTE, BACKSLASH, COMMA, COLON] = [code('"'), code('\\'), code(','), code(':')]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [code('['), code(']'), code('{'), code('}')]
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])
const ESCAPED: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map(code))
const LITERALS = new Map(['true', 'false', 'null'].map((word) => [code(word), Buffer.from(word)]))
const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/

/** The expected token. `first`: a value, or the end of an empty list. `name`: a member, `firstName`: or the end of an empty object. */
type State = 'value' | 'first' | 'firstName' | 'name' | 'colon' | 'after' | 'text' | 'nameText' | 'bad'

class JsonCheck {
  readonly #bytes: Buffer
  #at = 0
  #state: State = 'value'
  readonly #open: number[] = []
  /** The first byte of the text; then its elements and objects at the top level. */
  #first = 0
  #elements = 0
  #objects = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Reads about so many more bytes. False at the end or at invalid JSON. */
  goOn(length: number): boolean {
    const until = Math.min(this.#bytes.length, this.#at + length)
    while (this.#at < until && this.#state !== 'bad') this.#step(until)
    return this.#at < this.#bytes.length && this.#state !== 'bad'
  }

  kind(): JsonKind | undefined {
    if (this.#state !== 'after' || this.#open.length > 0) return undefined
    if (this.#first === OPEN_OBJECT) return { kind: 'object' }
    if (this.#first !== OPEN_LIST) return { kind: this.#first === code('n') ? 'null' : 'value' }
    return this.#objects === this.#elements ? { kind: 'rows', count: this.#elements } : { kind: 'list' }
  }

  #step(until: number): void {
    const sign = this.#bytes[this.#at] as number // the index is below the length
    if (this.#state === 'text' || this.#state === 'nameText') this.#text(until)
    else if (SPACES.has(sign)) this.#at++
    else if (this.#state === 'value' || this.#state === 'first') this.#value(sign)
    else this.#punctuation(sign)
  }

  #value(sign: number): void {
    const isEnd = sign === CLOSE_LIST && this.#state === 'first'
    if (this.#open.length === 0) this.#first = sign
    else if (this.#open.length === 1 && this.#first === OPEN_LIST && !isEnd) this.#count(sign)
    if (isEnd) this.#close(OPEN_LIST)
    else if (sign === QUOTE) this.#enter('text')
    else if (sign === OPEN_OBJECT || sign === OPEN_LIST) this.#nest(sign)
    else this.#scalar(sign)
  }

  #count(sign: number): void {
    this.#elements++
    if (sign === OPEN_OBJECT) this.#objects++
  }

  #enter(state: State): void {
    this.#at++
    this.#state = state
  }

  #nest(sign: number): void {
    if (this.#open.length >= MAX_DEPTH) this.#state = 'bad'
    else this.#open.push(sign)
    if (this.#state !== 'bad') this.#enter(sign === OPEN_LIST ? 'first' : 'firstName')
  }

  #close(opened: number): void {
    if (this.#open.pop() === opened) this.#enter('after')
    else this.#state = 'bad'
  }

  #punctuation(sign: number): void {
    const inside = this.#open.at(-1)
    const state = this.#state
    if (state === 'colon' && sign === COLON) this.#enter('value')
    else if ((state === 'name' || state === 'firstName') && sign === QUOTE) this.#enter('nameText')
    else if (state === 'firstName' && sign === CLOSE_OBJECT) this.#close(OPEN_OBJECT)
    else if (state === 'after' && sign === COMMA && inside !== undefined)
      this.#enter(inside === OPEN_LIST ? 'value' : 'name')
    else if (state === 'after' && sign === CLOSE_LIST) this.#close(OPEN_LIST)
    else if (state === 'after' && sign === CLOSE_OBJECT) this.#close(OPEN_OBJECT)
    else this.#state = 'bad'
  }

  /** Reads up to the closing quote or the end of the slice. */
  #text(until: number): void {
    for (; this.#at < until; this.#at++) {
      const sign = this.#bytes[this.#at]
      if (sign === QUOTE) break
      if (sign === BACKSLASH) this.#escape()
      else if (sign === undefined || sign < 0x20) this.#state = 'bad'
      if (this.#state === 'bad') return
    }
    if (this.#at < until) this.#enter(this.#state === 'text' ? 'after' : 'colon')
  }

  #escape(): void {
    const sign = this.#bytes[++this.#at]
    if (
      sign === code('u') &&
      /^[0-9a-f]{4}$/i.test(this.#bytes.toString('latin1', this.#at + 1, this.#at + 5))
    )
      this.#at += 4
    else if (sign === undefined || !ESCAPED.has(sign)) this.#state = 'bad'
  }

  #scalar(sign: number): void {
    const word = LITERALS.get(sign)
    const end = word === undefined ? this.#numberEnd() : this.#at + word.length
    const isOne =
      word === undefined
        ? NUMBER.test(this.#bytes.toString('latin1', this.#at, end))
        : this.#bytes.subarray(this.#at, end).equals(word)
    this.#at = end
    this.#state = isOne ? 'after' : 'bad'
  }

  #numberEnd(): number {
    const longest = Math.min(this.#bytes.length, this.#at + MAX_NUMBER_LENGTH)
    let end = this.#at
    while (end < longest && isOfNumber(this.#bytes[end] as number)) end++ // the index is below the length
    return end
  }
}

/** `+`, `-`, `.`, digits, `E`, `e`. */
const isOfNumber = (sign: number): boolean =>
  (sign >= 0x30 && sign <= 0x39) || sign === 0x2d || sign === 0x2e || sign === 0x2b || (sign | 0x20) === 0x65
