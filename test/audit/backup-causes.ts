import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { recordRestore } from '#gateway/backups/archive/restore-archive.ts'
import type { Answer, TestService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'

/** Programs that stand in for those of PostgreSQL: the acts are recorded before one runs. */
export async function backupPrograms(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-programs-'))
  after(() => removeFolder(folder))
  for (const name of ['pg_dump', 'pg_restore'])
    await writeFile(
      path.join(folder, name),
      `#!/bin/sh\n[ "$1" = --version ] || cat\necho '${name} (PostgreSQL) 99.0'\n`,
      {
        mode: 0o755,
      },
    )
  return folder
}

/** Causes of the acts on backups. */
export function backupCauses(service: () => TestService) {
  const ADMIN = { actorId: 'admin-key' }
  const ok = (answer: Answer) => {
    assert.ok(answer.status < 400, answer.text)
    return answer
  }
  const request = async () => {
    const answer = ok(await service().admin.post('/admin/backups', { client_name: 'default' }))
    return { answer, id: answer.body.data.job_id as string }
  }
  const drain = () => service().service.kernel.jobs.drain(service().service.handlers)
  const completed = async () => {
    const { id } = await request()
    await drain()
    return id
  }
  return {
    'backup.requested': async () => {
      const { answer, id } = await request()
      await drain()
      return { ...ADMIN, targetId: id, answer }
    },
    'backup.cancelled': async () => {
      const { id } = await request()
      return {
        ...ADMIN,
        targetId: id,
        answer: ok(await service().admin.post(`/admin/backups/jobs/${id}/cancel`)),
      }
    },
    'backup.downloaded': async () => {
      const id = await completed()
      return {
        ...ADMIN,
        targetId: id,
        answer: ok(await service().admin.get(`/admin/backups/${id}/download`)),
      }
    },
    'backup.deleted': async () => {
      const id = await completed()
      return {
        ...ADMIN,
        targetId: id,
        answer: ok(await service().admin.send('DELETE', `/admin/backups/${id}`)),
      }
    },
    'restore.requested': async () => {
      const id = await completed()
      const body = { client_name: 'default', confirm: 'default' }
      const answer = ok(await service().admin.post(`/admin/backups/${id}/restore`, body))
      await drain()
      return { ...ADMIN, targetId: answer.body.data.job_id as string, answer }
    },
    'installation.restored': async () => {
      await recordRestore(service().controlUrl)
      return { actorId: 'cli', targetId: null }
    },
  }
}
