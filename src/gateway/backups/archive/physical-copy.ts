import { constants, type Dirent } from 'node:fs'
import { lstat, open, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { type Entry, textEntry } from './archive.ts'

export type CopyOptions = {
  /** A superuser's, without a pooler: the backup lasts as long as its session. */
  readonly url: string
  /** The server's PGDATA. */
  readonly dataFolder: string
  /** Shown by the server while the backup runs. */
  readonly label: string
  /** Called with the bytes that are to be copied, before the first is. */
  readonly onTotal: (bytes: number) => void
  readonly onBytes: (bytes: number) => void
}

/**
 * Entries of a consistent copy of a running server: its data folder between pg_backup_start and pg_backup_stop, and the WAL of that time
 * (PostgreSQL 18, 25.3.3 "Making a Base Backup Using the Low Level API"). A temporary replication slot keeps the WAL until the session ends.
 * Files may change while they are read: the WAL holds their pages.
 */
export async function* copyServer(options: CopyOptions): AsyncGenerator<Entry> {
  const { url, dataFolder, label } = options
  const session = await openSession(url)
  try {
    const start = await startBackup(session.client, label)
    const { folders, files } = await listFiles(dataFolder)
    options.onTotal(files.reduce((sum, { size }) => sum + size, 0))
    for (const name of folders) yield { kind: 'folder', name: inArchive(name) }
    for (const { name } of files) yield* fileEntry(options, name)
    // Last, as pg_basebackup does: its checkpoint must not be older than the files.
    yield await controlFile(dataFolder)
    const { labelfile, spcmapfile, wal } = await stopBackup(session.client, start)
    if (spcmapfile.trim() !== '')
      throw new Error('The server has tablespaces, which a backup cannot contain.')
    yield textEntry(inArchive('backup_label'), labelfile)
    for (const name of await readdir(path.join(dataFolder, 'pg_wal')))
      if (name.endsWith('.history') || (name >= wal.from && name <= wal.to && /^[0-9A-F]{24}$/.test(name)))
        yield* fileEntry(options, `pg_wal/${name}`)
  } finally {
    await session.close()
  }
}

const inArchive = (name: string): string => `data/${name}`

type Session = { readonly client: pg.Client; close(): Promise<void> }

/** A connection that stays open until `close`. Silence of ten minutes ends it: a checkpoint on a slow disk takes one or two. */
async function openSession(url: string): Promise<Session> {
  const opened = Promise.withResolvers<pg.Client>()
  const done = Promise.withResolvers<void>()
  const running = onConnection({ url, name: 'backup', deadline: 600_000 }, async (client) => {
    opened.resolve(client)
    await done.promise
  })
  running.catch(opened.reject)
  return {
    client: await opened.promise,
    close: async () => {
      done.resolve()
      await running
    },
  }
}

async function startBackup(client: pg.Client, label: string): Promise<string> {
  await client.query(
    `select pg_create_physical_replication_slot('gatehouse_backup_' || pg_backend_pid(), true, true)`,
  )
  const { rows } = await client.query<{ file: string }>(
    'select pg_walfile_name(pg_backup_start($1, true)) as file',
    [label],
  )
  return rows[0]?.file ?? ''
}

type Stopped = {
  readonly labelfile: string
  readonly spcmapfile: string
  /** The first and the last segment that recovery needs. */
  readonly wal: { readonly from: string; readonly to: string }
}

async function stopBackup(client: pg.Client, from: string): Promise<Stopped> {
  const { rows } = await client.query<{ labelfile: string; spcmapfile: string; file: string }>(
    'select labelfile, spcmapfile, pg_walfile_name(lsn) as file from pg_backup_stop(false)',
  )
  const [stopped] = rows
  if (stopped === undefined || from === '') throw new Error('the server did not tell where the backup ends')
  return { ...stopped, wal: { from, to: stopped.file } }
}

/** Folders whose content a copy does not need, or must not have (PostgreSQL 18, 25.3.3.1). */
const EMPTIED = /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\//
const KEPT_IN_WAL = /^pg_wal\/(archive_status|summaries)$/
const LEFT_OUT = new Set([
  'postmaster.pid',
  'postmaster.opts',
  'backup_label',
  'backup_label.old',
  'tablespace_map',
  'tablespace_map.old',
  'backup_manifest',
  'current_logfiles',
  'global/pg_control',
])
/** Temporary files and tables, and caches that the server writes anew. */
const TEMPORARY = /^(pgsql_tmp|pg_internal\.init|t\d{1,10}_\d)/

type Listed = {
  readonly folders: readonly string[]
  readonly files: readonly { readonly name: string; readonly size: number }[]
}

async function listFiles(dataFolder: string): Promise<Listed> {
  const folders: string[] = []
  const files: { name: string; size: number }[] = []
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(path.join(dataFolder, folder), { withFileTypes: true })) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory() && isCopied(name, entry)) {
        folders.push(name)
        await visit(name)
      } else if (entry.isSymbolicLink()) {
        throw new Error(`The data folder contains the link ${name}, which a backup cannot contain.`)
      } else if (entry.isFile() && isCopied(name, entry)) {
        const size = await sizeOf(path.join(dataFolder, name))
        if (size !== undefined) files.push({ name, size })
      }
    }
  }
  await visit('')
  return { folders, files }
}

const isCopied = (name: string, entry: Dirent): boolean =>
  !LEFT_OUT.has(name) &&
  !TEMPORARY.test(path.basename(name)) &&
  (!EMPTIED.test(name) || (entry.isDirectory() && KEPT_IN_WAL.test(name)))

const sizeOf = (file: string): Promise<number | undefined> =>
  unlessGone(lstat(file)).then((found) => found?.size)

/** Undefined for a file that the server has removed meanwhile; recovery removes it too. */
const unlessGone = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })

async function* fileEntry(
  { dataFolder, onBytes }: Pick<CopyOptions, 'dataFolder' | 'onBytes'>,
  name: string,
): AsyncGenerator<Entry> {
  const opening = open(path.join(dataFolder, name), constants.O_RDONLY | constants.O_NOFOLLOW)
  const handle = await unlessGone(opening)
  if (handle === undefined) return
  try {
    const { size } = await handle.stat()
    yield { kind: 'file', name: inArchive(name), size, content: contentOf(handle, size, onBytes) }
  } finally {
    await handle.close()
  }
}

const PIECE = 262_144

/** Exactly `size` bytes. A file that has grown is cut, and one that has shrunk is filled with zeros: recovery sets both right. */
async function* contentOf(
  handle: Awaited<ReturnType<typeof open>>,
  size: number,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE, size - at))
    const { bytesRead } = await handle.read(piece, 0, piece.length, at)
    const bytes = bytesRead === 0 ? piece.fill(0) : piece.subarray(0, bytesRead)
    at += bytes.length
    onBytes(bytes.length)
    yield bytes
  }
}

/** Read until two readings agree, since the server may be writing it. */
async function controlFile(dataFolder: string): Promise<Entry> {
  const file = path.join(dataFolder, 'global/pg_control')
  let before = await readFile(file)
  for (let tries = 0; tries < 100; tries++) {
    const bytes = await readFile(file)
    if (bytes.equals(before))
      return { kind: 'file', name: inArchive('global/pg_control'), size: bytes.length, content: [bytes] }
    before = bytes
    await sleep(5)
  }
  throw new Error('pg_control changes without an end')
}
