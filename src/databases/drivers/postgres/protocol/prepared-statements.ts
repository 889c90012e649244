import { hash } from 'node:crypto'
import type { ColumnWriter } from '#databases/drivers/postgres/protocol/rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'

/** Prepared statements that one connection keeps; each costs the server some ten kilobytes. */
const MOST_PREPARED = 100

export type Prepared = {
  readonly text: string
  /** Known from the first run on, so that the server need not describe its rows again. */
  types: readonly number[] | undefined
  writers: readonly ColumnWriter[] | undefined
}

/** What one connection has prepared, the least recently used first. */
export class PreparedStatements {
  readonly #prepared = new Map<string, Prepared>()
  #closing: string[] = []

  find(name: string, text: string): Prepared | undefined {
    const known = this.#prepared.get(name)
    if (known?.text !== text) return undefined
    this.#prepared.delete(name)
    this.#prepared.set(name, known)
    return known
  }

  add(name: string, statement: Prepared): void {
    const [oldest] = this.#prepared.keys()
    if (oldest !== undefined && this.#prepared.size >= MOST_PREPARED) this.drop(oldest)
    this.#prepared.set(name, statement)
  }

  /** Forgotten here, and closed on the server with the next statement. Closing what does not exist is no error there. */
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

/** Texts that are counted, and how long they may be: bodies can produce any number of them. */
const MOST_COUNTED = 1_000
const LONGEST_TEXT = 16_384

export type Namer = (text: string, parameters: readonly (Column | undefined)[], role?: string) => string

/**
 * Names for texts that come again: the first run of a text is unnamed, from the second on it is prepared. So a client that
 * produces ever new texts fills nobody's memory, and the planner works once for a text that stays.
 * The server settles the types of parameters when it prepares, for good: a column of another type needs another name. It plans a
 * statement anew whenever another role uses it, where policies are in it: each role has its own.
 */
export function createNamer(): Namer {
  const seen = new Map<string, string>()
  return (text, parameters, role = '') => {
    if (text.length > LONGEST_TEXT) return ''
    const key = `${text}\0${role}\0${parameters.map((column) => column?.cast).join()}`
    const name = seen.get(key)
    if (name === undefined && seen.size >= MOST_COUNTED) seen.delete(seen.keys().next().value ?? '')
    if (name !== undefined && name !== '') return name
    const next = name === undefined ? '' : `g${hash('sha256', key).slice(0, 24)}`
    seen.delete(key)
    seen.set(key, next)
    return next
  }
}
