import assert from 'node:assert/strict'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { actWithoutProof } from '#identity/act.ts'
import { changeRole } from '#identity/roles.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { eventually } from '#test/embedded.ts'
import { testService } from '#test/harness.ts'
import { ageProof, byBearer, operatorOf } from '#test/operators.ts'
import { removeFolder } from '#test/temporary-folder.ts'

/** More than sockets hold: the system gives a reader up to 32 MiB. */
const BYTES = 80_000_000
const programs = await mkdtemp(path.join(tmpdir(), 'gatehouse-programs-'))
after(() => removeFolder(programs))
await writeFile(
  path.join(programs, 'pg_dump'),
  `#!/bin/sh\n[ "$1" = --version ] && echo 'pg_dump (PostgreSQL) 99.0' || head -c ${BYTES} /dev/zero\n`,
  { mode: 0o755 },
)
const t = await testService({
  config: {
    backups: { programs },
    server: { trusted_proxies: ['127.0.0.1'] },
    rate_limits: { enabled: true },
    auth: { admin: { roles: { backups: { operator: ['backups'], gateway: { default: ['orders.read'] } } } } },
  },
})
const { kernel } = t.service
const { job_id: id } = (await t.admin.post('/admin/backups', { client_name: 'default' })).body.data
await kernel.jobs.drain(t.service.handlers)

/** Reads a part of the download, waits while `meanwhile` happens, and reads the rest. Returns the bytes. */
const download = (headers: Readonly<Record<string, string>>, meanwhile: () => Promise<unknown>) =>
  new Promise<number>((resolve) => {
    let bytes = 0
    get(`${t.url}/admin/backups/${id}/download`, { headers }, async (response) => {
      response.on('close', () => resolve(bytes)).on('error', () => {})
      response.on('data', ({ length }: Buffer) => {
        bytes += length
      })
      response.pause()
      await meanwhile()
      await sleep(2_500)
      response.resume()
    }).on('error', () => resolve(bytes))
  })

test('a download ends when the user of the session loses a right to the client', async () => {
  const root = await operatorOf(t, 'admin')
  const { headers } = byBearer(t, root)
  assert.equal(await download(headers, async () => {}), BYTES)
  const bytes = await download(headers, () =>
    actWithoutProof(kernel, root.id, (kernel, user) => changeRole(kernel, user, 'backups')),
  )
  assert.ok(bytes < BYTES, `${bytes}`)
})

test('a download goes on when the proof of the session gets older than ten minutes', async () => {
  const root = await operatorOf(t, 'admin')
  const { headers } = byBearer(t, root)
  assert.equal(await download(headers, () => ageProof(t, root, 11)), BYTES)
  const late = await byBearer(t, root).get(`/admin/backups/${id}/download`)
  assert.deepEqual([late.status, late.body.code], [403, 'session_not_fresh'])
})

test('a download by the admin key goes on while others at its address guess admin keys', async () => {
  const at = { 'x-forwarded-for': '203.0.113.9' }
  const guess = async () => {
    const headers = { ...at, [HEADER.adminKey]: 'guessed' }
    return (await t.anon.get('/admin/clients', { headers })).status
  }
  const guesses = async () => {
    while ((await guess()) !== 429);
  }
  assert.equal(await download({ ...t.admin.headers, ...at }, guesses), BYTES)
})

/** A download that has begun, and is not read further. */
const held = (headers: Readonly<Record<string, string>>) =>
  new Promise<{ readonly status: number | undefined; end(): void }>((resolve, reject) => {
    const request = get(`${t.url}/admin/backups/${id}/download`, { headers }, (response) => {
      response.pause().on('error', () => {})
      resolve({ status: response.statusCode, end: () => void request.destroy() })
    }).on('error', reject)
  })

test('the sessions of one user have two downloads at once, and leave room for others', async () => {
  const [root, other] = [await operatorOf(t, 'admin'), await operatorOf(t, 'admin')]
  const begun = [
    await held(byBearer(t, root).headers),
    await held(byBearer(t, root).headers),
    await held(byBearer(t, root).headers),
    await held(byBearer(t, other).headers),
    await held(t.admin.headers),
  ]
  assert.deepEqual(
    begun.map(({ status }) => status),
    [200, 200, 503, 200, 200],
  )
  for (const { end } of begun) end()
  await eventually(async () => {
    const again = await held(byBearer(t, root).headers)
    again.end()
    return again.status === 200
  })
})
