/** Keys of one statement, and of one table in a batch. With more, the table is read again as a whole. */
export const MAX_KEYS = 10_000
/** Bytes of the keys of one statement, and of one table in a batch. */
export const MAX_NOTE_BYTES = 4_194_304
/** Notes of all tables in a batch. */
export const MAX_NOTES = 20_000
/** Characters of a position, which travels in a header. */
export const MAX_POSITION = 8_192
