import type { Config } from '#kernel/config/config.ts'
import { bytesOfKeys, type Cohort, type Member, note } from './cohort.ts'
import type { LiveTable } from './live-table.ts'
import type { Reader } from './reader.ts'
import type { Sent } from './sent.ts'

/**
 * The rows that the page of a stream shows: kept for a short time after its connection has broken, for a reader who comes back to this process, where
 * it cannot resume by a position, because policies or a public route may hide rows.
 */
export type Page = {
  /** With everything that has changed since. */
  readonly cohorts: readonly Cohort[]
  readonly sent: Sent
  /** Its reader goes on noting changes until then. */
  readonly release: () => void
}

/** A stream that is open, or whose page is kept. */
type Kept = {
  /** The user or key that it was sent to. */
  readonly caller: string
  /** The network of its address. */
  readonly address: string
  readonly reader: Reader
  /** Ends the stream. Undefined where it is not known what its page shows, and where its keys take more than `most` bytes. */
  part(absent: Member, most: number): Page | undefined
}

/** Where a reader has been: the secret name of a stream, and the number of the last delivery. */
export type Place = { readonly stream: string; readonly sent: number }

export type Pages = {
  open(stream: string, kept: Kept): void
  /** Its connection has broken. */
  keep(stream: string): void
  /** The stream has ended. */
  close(stream: string): void
  /** The cohorts of the page, for the member that goes on with them. Undefined where it has to begin again. */
  take(place: Place, by: Pick<Kept, 'caller' | 'reader'>, tables: readonly LiveTable[], member: Member): readonly Cohort[] | undefined
  closeAll(): void
} // biome-ignore format: one line a member

/** One whose reader is away. */
type Away = {
  readonly page: Page
  readonly address: string
  /** Bytes of its keys. */
  size: number
  readonly drop: () => void
}

/** Milliseconds. */
const KEPT = 60_000
/** Pages, and the bytes of their keys, of this process. When there is no room, a reader begins again. */
const MOST_PAGES = 1_000
const MOST_BYTES = 25_165_824

/** Of one address as many pages as streams, and half of the bytes. */
export function createPages({ limits }: Pick<Config, 'limits'>): Pages {
  const open = new Map<string, Kept>()
  const broken = new Map<string, Away>()
  let bytes = 0

  function drop(stream: string): void {
    open.delete(stream)
    const away = broken.get(stream)
    if (away === undefined) return
    broken.delete(stream)
    bytes -= away.size
    away.drop()
  }

  /** The bytes that there is room for. */
  function roomFor(address: string): number {
    const own = [...broken.values()].filter((away) => away.address === address)
    if (broken.size >= MOST_PAGES || own.length >= limits.streams_per_address) return -1
    return Math.min(MOST_BYTES - bytes, MOST_BYTES / 2 - own.reduce((sum, { size }) => sum + size, 0))
  }

  /** A key has changed while its reader is away. */
  function grow(stream: string, by: number): void {
    const away = broken.get(stream)
    if (away === undefined) return
    bytes += by
    away.size += by
    if (bytes > MOST_BYTES) drop(stream)
  }

  function keep(stream: string): void {
    const kept = open.get(stream)
    const absent = absentMember(
      () => drop(stream),
      (by) => grow(stream, by),
    )
    const page = kept?.part(absent, roomFor(kept.address))
    if (kept === undefined || page === undefined) {
      drop(stream)
      return
    }
    const { reader, address } = kept
    for (const cohort of page.cohorts) reader.keep(cohort)
    const timer = setTimeout(() => drop(stream), KEPT).unref()
    const size = bytesOfKeys(page.cohorts)
    bytes += size
    broken.set(stream, {
      page,
      address,
      size,
      drop() {
        clearTimeout(timer)
        for (const cohort of page.cohorts) reader.remove(cohort)
        page.release()
      },
    })
  }

  return {
    open: (stream, kept) => void open.set(stream, kept),
    keep,
    close: drop,
    take({ stream, sent }, { caller, reader }, tables, member) {
      const kept = open.get(stream)
      if (kept?.caller !== caller || kept.reader !== reader) return undefined
      // It may not know yet that its connection is broken.
      if (!broken.has(stream)) keep(stream)
      const page = broken.get(stream)?.page
      drop(stream)
      return page && adopted(page, tables, sent, member)
    },
    closeAll() {
      for (const stream of [...broken.keys()]) drop(stream)
    },
  }
}

/** The page's cohorts in the order of the tables, with the keys of what may not have arrived. */
function adopted(
  page: Page,
  tables: readonly LiveTable[],
  from: number,
  member: Member,
): readonly Cohort[] | undefined {
  const missed = page.sent.after(from)
  const cohorts = tables.flatMap((live) => {
    const former = page.cohorts.find((one) => one.live.cohort === live.cohort)
    return former === undefined ? [] : [{ ...former, live, members: new Set([member]) }]
  })
  if (missed === undefined || cohorts.length !== page.cohorts.length) return undefined
  for (const { table, events } of missed) {
    const cohort = cohorts.find(({ live }) => live.name === table)
    if (cohort !== undefined) for (const { key } of events) note(cohort, key, true)
  }
  return cohorts
}

/** Of cohorts that note changes and read nothing. */
const absentMember = (drop: () => void, grow: (bytes: number) => void): Member => ({
  judge: () => Promise.reject(new Error('The reader is away')),
  deliver: drop,
  drained: () => Promise.resolve(),
  restart: drop,
  moved() {},
  noted: grow,
  behind() {},
  dismiss: drop,
})
