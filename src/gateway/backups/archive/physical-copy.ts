import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import tar from 'tar-stream'
import { GuardedClient } from '#kernel/db/guarded-client.ts'
import { systemSession } from '#kernel/db/session-settings.ts'
import type { Entry } from './archive.ts'

type CopyOptions = {
  /** A superuser's, without a pooler: the backup lasts as long as its session. */
  readonly url: string
  /** Shown by the server while the backup runs. */
  readonly label: string
  /** Called with the bytes that are to be copied, about, before the first is. */
  readonly onTotal: (bytes: number) => void
  readonly onBytes: (bytes: number) => void
}

/** Silence of the server, or of the reader, after which the backup fails, milliseconds: a checkpoint on a slow disk takes one or two minutes. */
const SILENCE = 600_000

/**
 * Entries of a consistent copy of a running server, by its own BASE_BACKUP (PostgreSQL 18, 54.4 "Streaming Replication Protocol"): its data folder
 * as a tar archive, with the WAL that recovery needs. The server leaves out what a copy must not have, and checks the checksum of each page. A
 * temporary replication slot keeps the WAL until the session ends.
 */
export async function* copyServer(options: CopyOptions): AsyncGenerator<Entry> {
  const settings = { ...systemSession(options.url), application_name: 'gatehouse backup' }
  const client = new GuardedClient({ ...settings, replication: 'database' })
  const extract = tar.extract()
  try {
    await client.connect()
    const socket = client.connection.stream as Socket // without TLS, or of TLS
    socket.setTimeout(SILENCE, () => client.destroy())
    await client.query(
      `select pg_create_physical_replication_slot('gatehouse_backup_' || pg_backend_pid(), true, true)`,
    )
    const copying = pipeline(baseBackup(client, options), extract)
    // Awaited below; it may fail before that.
    copying.catch(() => {})
    for await (const entry of extract) yield entryOf(entry.header, entry as AsyncIterable<Buffer>) // it has no encoding
    await copying
  } finally {
    extract.destroy()
    await client.end()
  }
}

function entryOf({ name, type, size = 0 }: tar.Header, content: AsyncIterable<Buffer>): Entry {
  // Folders that the server writes though their content is left out begin with a dot.
  const inArchive = `data/${name.replace(/^\.\/|\/$/g, '')}`
  if (type === 'file') return { kind: 'file', name: inArchive, size, content }
  if (type === 'directory') return { kind: 'folder', name: inArchive }
  throw new Error(`The data folder contains ${name}, a ${type}, which a backup cannot contain.`)
}

/** The tar archive of BASE_BACKUP. The socket is read as fast as the archive is. */
function baseBackup(client: GuardedClient, { label, onTotal, onBytes }: CopyOptions): Readable {
  const socket = client.connection.stream
  const archive = new Readable({
    read: () => void socket.resume(),
    destroy(error, done) {
      if (error !== null) client.destroy()
      done(error)
    },
  })
  const text = `BASE_BACKUP (label ${pg.escapeLiteral(label)}, checkpoint 'fast', wal true, wait false, progress true, manifest 'no')`
  const reply: BaseBackup = {
    submit: (connection) => connection.query(text),
    handleRowDescription() {},
    handleDataRow({ fields }) {
      // The row of a tablespace: id, folder and kilobytes. Those of the begin and the end have a position and a timeline.
      if (fields.length !== 3) return
      if (fields[0] === null) onTotal(Number(fields[2]) * 1_024)
      else archive.destroy(new Error('The server has tablespaces, which a backup cannot contain.'))
    },
    handleCopyData({ chunk }) {
      // Others are the begin of the archive and reports of the progress.
      if (chunk[0] !== DATA) return
      onBytes(chunk.length - 1)
      // Copied, because the parser uses its buffer again.
      if (!archive.push(Buffer.from(chunk.subarray(1)))) socket.pause()
    },
    handleCommandComplete() {},
    handleError: (error) => void archive.destroy(error),
    handleReadyForQuery: () => void archive.push(null),
  }
  client.query(reply)
  return archive
}

/** First byte of a message with bytes of the archive. */
const DATA = 'd'.charCodeAt(0)

/** The handlers that pg calls, which are not in its types. */
type BaseBackup = {
  submit(connection: pg.Connection): void
  handleRowDescription(): void
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void
  handleCopyData(message: { readonly chunk: Buffer }): void
  handleCommandComplete(): void
  handleError(error: Error): void
  handleReadyForQuery(): void
}
