import { call } from '../../api.js'
import { named } from './described.js'
import { batchesOf } from './import-file.js'

/**
 * @typedef {{ row: number, column?: string, error: string, code: string }} BadRow
 * @typedef {{ first: number, last: number, written: number }} Written a batch that is stored
 * @typedef {{ pass: 'check' | 'write', bytes: number, read: number, inserted: number, skipped: number, refused: number, errors: readonly BadRow[], batches: readonly Written[], next: number }} Progress `next`: the first row of which nothing is known
 * @typedef {Progress & { end: 'done' | 'bad' | 'cancelled' | 'failed', failure?: unknown, failedAt?: { first: number, last: number } }} Outcome
 * `bad`: the check has found rows that cannot be stored, and nothing is written. `cancelled`: between two batches, so nothing of the next one is sent.
 * @typedef {{ at: import('./described.js').At, file: File, reading: import('./import-file.js').Reading, columns: Readonly<Record<string, string | null>>, onConflict: string, isWhole: boolean, from: number }} Import
 * `from`: the number of the first row to store; those before are stored already.
 */

/** Errors that are shown. */
const SHOWN = 500

/** @type {Progress} */
export const NOTHING = {
  pass: 'write',
  bytes: 0,
  read: 0,
  inserted: 0,
  skipped: 0,
  refused: 0,
  errors: [],
  batches: [],
  next: 1,
}

/**
 * Imports a file in batches, each of which is stored before the next one is read. With `isWhole` every row is checked in the database first,
 * and nothing is written unless all are good.
 * @param {Import} asked
 * @param {(progress: Progress) => void} onProgress
 * @param {() => boolean} isCancelled
 * @returns {Promise<Outcome>}
 */
export async function importFile(asked, onProgress, isCancelled) {
  if (asked.isWhole) {
    const checked = await pass(asked, 'check', onProgress, isCancelled)
    if (checked.end !== 'done') return checked
    if (checked.refused > 0) return { ...checked, end: 'bad' }
  }
  return pass(asked, 'write', onProgress, isCancelled)
}

/**
 * @param {Import} asked
 * @param {'check' | 'write'} kind
 * @param {(progress: Progress) => void} onProgress
 * @param {() => boolean} isCancelled
 * @returns {Promise<Outcome>}
 */
async function pass(asked, kind, onProgress, isCancelled) {
  let progress = { ...NOTHING, pass: kind, next: asked.from }
  let bytes = 0
  /** @type {{ first: number, last: number } | undefined} */
  let at
  try {
    for await (const batch of batchesOf(asked.file, asked.reading, asked.from, (read) => (bytes = read))) {
      const last = batch.first + batch.count - 1
      if (isCancelled()) return { ...progress, end: 'cancelled' }
      at = { first: batch.first, last }
      const result = await send(asked, batch.content, kind)
      at = undefined
      progress = after({ ...progress, bytes }, batch, result)
      onProgress(progress)
      if (result.stopped !== undefined) throw new Error('Too many rows were refused; the rest was not sent.')
    }
    return { ...progress, bytes: asked.file.size, end: 'done' }
  } catch (failure) {
    return { ...progress, end: 'failed', failure, ...(at && { failedAt: at }) }
  }
}

/** @param {Import} asked @param {string} content @param {'check' | 'write'} kind */
async function send({ at, reading, columns, onConflict }, content, kind) {
  const isCsv = reading.format === 'csv'
  const { data } = await call('/gateway/import', {
    method: 'POST',
    client: at.client,
    query: {
      ...named(at),
      columns: JSON.stringify(columns),
      on_conflict: onConflict,
      dry_run: kind === 'check' ? true : undefined,
    },
    file: { type: isCsv ? 'text/csv' : 'application/x-ndjson', content },
  })
  return data
}

/** @param {Progress} before @param {import('./import-file.js').Batch} batch @param {any} result @returns {Progress} */
function after(before, { first, count }, result) {
  const inserted = before.pass === 'check' ? result.would_insert : result.rows_inserted
  /** @type {readonly BadRow[]} */
  const errors = result.errors
  return {
    ...before,
    read: before.read + result.rows_read,
    inserted: before.inserted + inserted,
    skipped: before.skipped + result.rows_skipped,
    refused: before.refused + result.rows_refused,
    errors: [...before.errors, ...errors.map((one) => ({ ...one, row: one.row + first - 1 }))].slice(
      0,
      SHOWN,
    ),
    next: first + count,
    batches:
      before.pass === 'check'
        ? before.batches
        : [...before.batches, { first, last: first + count - 1, written: inserted }],
  }
}
