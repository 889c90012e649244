import { tell } from '#identity/tell.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import { endable } from '#kernel/endable.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createKeyedSemaphore } from '#kernel/keyed-semaphore.ts'
import { expectEveryRight } from '../caller/expected-rights.ts'
import { fail } from '../errors.ts'
import { findBackup } from './backups.ts'
import type { OpenBackup } from './location/backup-store.ts'
import { storeOf } from './location/location.ts'
import { type Backup, isComplete } from './store.ts'

type Download = { readonly backup: Backup; readonly content: AsyncIterable<Buffer> }

type Downloads = {
  /** Opens the file of a backup. `content` has to be read, or its `return()` called. */
  open(kernel: Kernel, id: string): Promise<Download>
}

/** Of one process. A user has a quarter of them at most, whatever the number of sessions; the admin key may have all. */
const MAX_DOWNLOADS = 8
const USERS = 4
/** Milliseconds. */
const LOOK_EVERY = 1_000

export function createDownloads(): Downloads {
  const refusal = () => fail('too_many_downloads')
  const semaphore = createKeyedSemaphore(MAX_DOWNLOADS, { max: 0, refusal, parts: USERS })
  return {
    async open(kernel, id) {
      const backup = await findBackup(kernel, id)
      await expectToHold(kernel, backup)
      const release = await semaphore.acquire(
        ...(kernel.operator === undefined ? [] : [kernel.origin.actorId]),
      )
      const file = await opened(kernel, backup).catch((error: unknown) => {
        release()
        throw error
      })
      const close = closeOnce(async () => {
        release()
        await file.close()
      })
      try {
        await tell(kernel, 'backup.downloaded', { targetId: id, clientName: backup.clientName })
      } catch (error) {
        await close()
        throw error
      }
      return { backup, content: guarded(kernel, backup, file.content(), close) }
    },
  }
}

/** An archive is of the whole server. */
const expectToHold = (
  kernel: Kernel,
  { format, clientName }: Backup,
  how?: { readonly goesOn: boolean },
): Promise<void> => expectEveryRight(kernel, format === 'archive' ? EVERY_CLIENT : clientName, how)

async function opened(kernel: Kernel, { location, size }: Backup): Promise<OpenBackup> {
  const file = await storeOf(kernel, location).open(location)
  if (file === undefined) throw fail('backup_file_missing')
  if (file.size === size) return file
  await file.close()
  throw fail('backup_file_changed')
}

/**
 * The static admin key holds for the life of a process, so the backup itself is what can be taken away during a download, and a session's
 * rights: each second both are looked up again, and the download breaks off when one of them is gone. While the control database does not answer, nothing is sent. It also
 * breaks off when the file has another length than the answer says, so that no byte counts as a part of another answer.
 */
function guarded(
  kernel: Kernel,
  backup: Backup,
  pieces: AsyncGenerator<Buffer>,
  close: () => Promise<void>,
): AsyncIterable<Buffer> {
  const { id, size } = backup
  let looked = performance.now()
  let left = size
  const next = async (): Promise<IteratorResult<Buffer>> => {
    if (performance.now() - looked > LOOK_EVERY) {
      if (!(await isComplete(kernel.db, id))) throw new Error('the backup was deleted during its download')
      await expectToHold(kernel, backup, { goesOn: true })
      looked = performance.now()
    }
    const result = await pieces.next()
    left -= result.done === true ? 0 : result.value.length
    if (left < 0 || (result.done === true && left > 0))
      throw new Error('the file of the backup was changed during its download')
    return result
  }
  return endable(async () => {
    try {
      const result = await next()
      if (result.done === true) await close()
      return result
    } catch (error) {
      await close()
      throw error
    }
  }, close)
}

function closeOnce(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined
  return () => {
    closing ??= close()
    return closing
  }
}
