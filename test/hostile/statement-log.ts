import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'

/** Server settings that log every statement, including those that fail before execution. */
export const LOGGING = {
  log_statement: 'all',
  log_min_duration_statement: '0',
  log_parameter_max_length: '-1',
  log_min_error_statement: 'error',
  logging_collector: 'on',
  log_destination: 'jsonlog',
  log_directory: 'log',
  log_filename: 'statements.log',
  log_rotation_age: '0',
  log_rotation_size: '0',
}

export type Logged = { readonly text: string; readonly parameters: string }

/** Returns a function that reads the statements of a role since its last call. It waits for a marker, because another process writes the log. */
export function openStatementLog(dir: string, superuserUrl: string, role: string): () => Promise<Logged[]> {
  const file = path.join(dir, 'data/log/statements.json')
  let seen = 0
  let marks = 0
  return async () => {
    const mark = `mark ${++marks} of the test`
    await withClient(superuserUrl, (client) => client.query(`select '${mark}'`))
    const fresh = await upTo(file, seen, mark)
    seen += fresh.length
    const lines: Record<string, string>[] = fresh
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    return lines.filter((line) => line.user === role).flatMap(statementsIn)
  }
}

/** Reads whole lines from an offset, once they contain the marker. */
async function upTo(file: string, from: number, mark: string): Promise<Buffer> {
  for (let tries = 0; tries < 500; tries++) {
    const fresh = (await readFile(file)).subarray(from)
    if (fresh.includes(mark)) return fresh.subarray(0, fresh.lastIndexOf('\n') + 1)
    await sleep(20)
  }
  throw new Error('the log does not contain the marker')
}

/** The statement of a log line: in its message, or for an error in the member `statement`. */
function statementsIn({ message = '', detail = '', statement }: Record<string, string>): Logged[] {
  const found =
    /^(?:duration: [\d.]+ ms {2})?(?:statement|(?:parse|bind|execute) \S+): (.*)$/s.exec(message)?.[1] ??
    statement
  return found === undefined ? [] : [{ text: found, parameters: detail }]
}

export type Shape = { readonly shape: string; readonly names: readonly string[] }

/**
 * Replaces quoted names and integers in a statement by placeholders. All other characters stay, so that injected text would be visible.
 * https://www.postgresql.org/docs/18/sql-syntax-lexical.html
 */
export function shapeOf(text: string): Shape {
  const names: string[] = []
  const token =
    /("(?:[^"]|"")*")|(?:\bE)?'(?:[^']|'')*'|--[^\n]*|\/\*.*?\*\/|\$\d+|\b\d+\b|[\p{L}_][\p{L}\p{N}_$]*|\s+|./gsu
  const shape = text.replace(token, (found, name: string | undefined) => {
    if (name !== undefined) {
      names.push(name.slice(1, -1).replaceAll('""', '"'))
      return '"?"'
    }
    return /^\d+$/.test(found) ? '0' : found
  })
  return { shape, names }
}
