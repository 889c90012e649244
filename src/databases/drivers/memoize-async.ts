import { openedOnce } from '#kernel/opened-once.ts'

/** Calls `ask` once for all callers, and again only after a failure. */
export const memoizeAsync = <T>(ask: () => Promise<T>): (() => Promise<T>) => openedOnce(ask).get
