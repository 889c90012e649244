import { hash } from 'node:crypto'
import type { ColumnWriter } from '#databases/drivers/postgres/protocol/rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'

/** The most prepared statements of one connection; each takes about ten kilobytes of the server. */
const MAX_PREPARED = 100

export type CachedStatement = {
  readonly text: string
  /** Known after the first run, so that the server need not describe the rows again. */
  types: readonly number[] | undefined
  writers: readonly ColumnWriter[] | undefined
}

/** Prepared statements of one connection, the least recently used first. */
export class PreparedStatements {
  readonly #prepared = new Map<string, CachedStatement>()
  #closing: string[] = []

  find(name: string, text: string): CachedStatement | undefined {
    const known = this.#prepared.get(name)
    if (known?.text !== text) return undefined
    this.#prepared.delete(name)
    this.#prepared.set(name, known)
    return known
  }

  add(name: string, statement: CachedStatement): void {
    const [oldest] = this.#prepared.keys()
    if (oldest !== undefined && this.#prepared.size >= MAX_PREPARED) this.drop(oldest)
    this.#prepared.set(name, statement)
  }

  /** Forgets the statement; the server closes it with the next statement. Closing an unknown statement is no error. */
  drop(name: string): void {
    if (this.#prepared.delete(name)) this.#closing.push(name)
  }

  clear(): void {
    for (const name of [...this.#prepared.keys()]) this.drop(name)
  }

  takeClosing(): readonly string[] {
    if (this.#closing.length === 0) return NONE
    const closing = this.#closing
    this.#closing = []
    return closing
  }
}

const NONE: readonly string[] = []

/** Limits of counted texts and of their length, because bodies can produce any number of texts. */
const MAX_COUNTED = 1_000
const MAX_TEXT_LENGTH = 16_384

export type Namer = (text: string, parameters: readonly (Column | undefined)[], role?: string) => string

/**
 * Names texts that recur: the first run of a text is unnamed, from the second on it is prepared. So ever new texts take no memory, and a
 * recurring text is planned once. Preparing fixes the types of the parameters, so a column of another type needs another name. With
 * policies the server plans a statement again whenever another role uses it, so each role has its own names.
 */
export function createNamer(): Namer {
  const seen = new Map<string, string>()
  return (text, parameters, role = '') => {
    if (text.length > MAX_TEXT_LENGTH) return ''
    const key = `${text}\0${role}\0${parameters.map((column) => column?.cast).join()}`
    const name = seen.get(key)
    if (name === undefined && seen.size >= MAX_COUNTED) seen.delete(seen.keys().next().value ?? '')
    if (name !== undefined && name !== '') return name
    const next = name === undefined ? '' : `g${hash('sha256', key).slice(0, 24)}`
    seen.delete(key)
    seen.set(key, next)
    return next
  }
}
