import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { startService } from '#app'
import { offerFirstAdmin } from '#identity/first-admin.ts'
import { type Config, defaultConfig } from '#kernel/config/config.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { openDatabases } from '#startup/open-databases.ts'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { type Actor, ADMIN_KEY, actor, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { WITHOUT_S3 } from '#test/s3/program.ts'
import { startS3Server } from '#test/s3/server.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { runProgram } from './program.ts'

type Backups = Pick<Config['backups'], 'location'> & { s3?: Partial<Config['backups']['s3']> }
type Job = { readonly id: string; readonly status: string; readonly location: string }

const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-side-by-side-'))
const secrets = createSecrets(TEST_SECRET, secureRandom)
after(() => removeFolder(folder))

/** An installation on its own embedded server, with a schedule that keeps one backup. */
async function open(name: string, backups: Backups) {
  const config = defaultConfig({
    server: { port: 0, data_dir: path.join(folder, name) },
    backups: { ...backups, schedules: { nightly: { client: 'default', cron: '30 3 * * *', keep: 1 } } },
  })
  const log = createLog({ level: 'silent', format: 'json' })
  const databases = await openDatabases({
    config,
    secrets,
    mismatch: '',
    random: secureRandom,
    report: () => {},
    createsMissing: true,
  })
  const service = await startService({ config, databases, secrets, adminKey: ADMIN_KEY, log })
  after(async () => {
    await service.stop()
    await databases.stop()
  })
  const admin = actor(`http://127.0.0.1:${await service.listen()}`, { apikey: ADMIN_KEY })
  const recurring = (task: string) => service.recurring.find(({ name }) => name === task)?.run()
  return {
    admin,
    kernel: service.kernel,
    look: () => recurring('fail-lost-backups'),
    nightly: async () => {
      await recurring('backup-nightly')
      await service.kernel.jobs.drain(service.handlers)
    },
  }
}

const jobsOf = async (admin: Actor): Promise<readonly Job[]> =>
  (await admin.get('/admin/backups/jobs?limit=500')).body.data.jobs

/** Backs up twice, restores the second archive beside the original, and lets both go on. */
async function goOnSideBySide(name: string, backups: Backups, files: () => Promise<readonly string[]>) {
  const original = await open(`${name}-original`, backups)
  await original.nightly()
  // This job of the original will end after the archive was made, and another one has failed before.
  const { kernel } = original
  const unfinished = ['running', 'failed'].map((status) => ({
    id: uuidv7(kernel.now(), kernel.random),
    status,
    jobType: 'backup',
    clientName: `of-${status}`,
    format: 'dump',
    location: `${backups.location}/${status}.dump`,
    createdAt: kernel.now(),
    updatedAt: kernel.now(),
    leaseUntil: new Date(kernel.now().getTime() + 60_000),
  }))
  const installation = await kernel.db.selectFrom('installation').select('id').executeTakeFirstOrThrow()
  await kernel.db
    .insertInto('backupJob')
    .values(unfinished.map((row) => ({ ...row, installationId: installation.id })))
    .execute()
  const link = await kernel.db.transaction().execute((db) => offerFirstAdmin({ ...kernel, db }))
  assert.ok(link)
  await original.nightly()
  const [used, first] = (await jobsOf(original.admin)).filter(({ status }) => status === 'completed')
  assert.ok(used && first)

  const { endpoint = '', access_key_id = '', secret_key = '', region = '' } = backups.s3 ?? {}
  const restored = await runProgram(folder, ['restore', used.location], {
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__DATA_DIR: path.join(folder, `${name}-copy`),
    ...(backups.s3 && {
      SERVICE_BACKUPS__S3__ENDPOINT: endpoint,
      SERVICE_BACKUPS__S3__REGION: region,
      SERVICE_BACKUPS__S3__ACCESS_KEY_ID: access_key_id,
      SERVICE_BACKUPS__S3__SECRET_KEY: secret_key,
    }),
  })
  assert.equal(restored.code, 0, restored.stderr)
  const copy = await open(`${name}-copy`, backups)
  const made = await copy.admin.post('/api/auth/admin/create-first-admin', {
    ...{ token: link, name: 'Root', email: 'root@example.com', password: PASSWORD },
  })
  assert.deepEqual([made.status, made.body.code], [401, 'INVALID_TOKEN'], 'an open link is not restored')
  await copy.look()
  const statuses = async () =>
    Object.fromEntries((await jobsOf(copy.admin)).map(({ id, status }) => [id, status]))
  const [running, failed] = unfinished
  assert.deepEqual(await statuses(), {
    [used.id]: 'completed',
    [first.id]: 'foreign',
    [running?.id ?? '']: 'failed',
    [failed?.id ?? '']: 'failed',
  })
  const listed = await copy.admin.get('/admin/backups/jobs?status=foreign')
  assert.deepEqual([listed.body.data.total, listed.body.data.jobs[0].id], [1, first.id])
  for (const { id } of [used, first]) {
    const url = `/admin/backups/${id}/download`
    const [here, there] = [await copy.admin.get(url), await original.admin.get(url)]
    assert.deepEqual([here.status, here.headers.get('repr-digest')], [200, there.headers.get('repr-digest')])
  }

  const before = await files()
  for (let night = 0; night < 3; night++) await copy.nightly()
  const own = (await jobsOf(copy.admin)).filter(({ id, status }) => status === 'completed' && id !== used.id)
  assert.equal(own.length, 2, 'its own are pruned')
  assert.deepEqual(await files(), [...before, ...own.map(({ location }) => location)].toSorted())
  for (const { id } of [used, first, ...unfinished])
    assert.equal((await copy.admin.send('DELETE', `/admin/backups/${id}`)).status, 200)
  assert.deepEqual(await files(), [...before, ...own.map(({ location }) => location)].toSorted())
  await original.nightly()
  for (const { location } of own) assert.ok((await files()).includes(location))
  assert.equal((await files()).includes(first.location), false, 'the original prunes its own')
}

test('an original and its restored copy with one folder for backups remove no file of the other', async () => {
  const location = path.join(folder, 'backups')
  const files = async () => (await readdir(location)).map((name) => path.join(location, name)).toSorted()
  await goOnSideBySide('folder', { location }, files)
})

test('an original and its restored copy with one bucket for backups remove no object of the other', {
  skip: WITHOUT_S3,
}, async () => {
  const { access } = await startS3Server({ buckets: ['backups'] })
  const client = new S3Client({
    endpoint: access.endpoint,
    region: access.region,
    credentials: { accessKeyId: access.access_key_id, secretAccessKey: access.secret_key },
    forcePathStyle: true,
  })
  const objects = async () => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'backups' }))
    return Contents.map(({ Key }) => `s3://backups/${Key}`).toSorted()
  }
  await goOnSideBySide('bucket', { location: 's3://backups/gatehouse', s3: access }, objects)
})

test(
  'in a copy of a control database the backups of the original are foreign, can be restored, and stay',
  NEEDS_PROGRAMS,
  async () => {
    const { t, done, backUp, restore, find } = await backupService()
    const { db } = t.service.kernel
    const backup = await done(await backUp())
    const waiting = (await backUp()).body.data.job_id
    await db.updateTable('installation').set({ id: '01a203cd-ff7f-7487-9312-fc8ac2b56846' }).execute()
    await t.service.kernel.jobs.drain(t.service.handlers)
    await t.service.recurring.find(({ name }) => name === 'fail-lost-backups')?.run()
    assert.deepEqual([(await find(backup.id)).status, (await find(waiting)).status], ['foreign', 'failed'])
    const restored = await done(await restore(backup.id))
    assert.deepEqual([restored.status, restored.error_message], ['completed', null])
    await writeFile((await find(waiting)).location, 'made by the original')
    for (const { id, location } of [backup, await find(waiting)]) {
      assert.equal((await t.admin.send('DELETE', `/admin/backups/${id}`)).status, 200)
      assert.ok(existsSync(location), location)
    }
  },
)
