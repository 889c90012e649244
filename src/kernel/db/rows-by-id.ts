const BATCH = 500
const NIL = '00000000-0000-0000-0000-000000000000'

/** All rows by their UUID, read in batches. `listAfter` returns at most `max` rows with larger ids, in order. */
export async function* rowsById<Row extends { readonly id: string }>(
  listAfter: (after: string, max: number) => Promise<readonly Row[]>,
): AsyncGenerator<Row> {
  for (let after = NIL; ; ) {
    const rows = await listAfter(after, BATCH)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < BATCH) return
    after = last.id
  }
}
