/** An archive that cannot be used; the message says why, for the operator. */
export class ArchiveError extends Error {}
