import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { runHere } from './command.ts'

const t = await testService()
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-orgs-'))
after(() => removeFolder(folder))
const run = (...args: string[]) =>
  runHere(folder, ['orgs', ...args], { DATABASE_URL: t.controlUrl, SERVICE_SECRET: TEST_SECRET })

test('orgs lists organizations and their members', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  await createOrganization(t, [[bea, 'owner']])
  const listed = await run('list', '--search', acme.slug.toUpperCase())
  const [header, row, ...others] = listed.stdout.trimEnd().split('\n')
  assert.match(header ?? '', /^id +slug +name +members +two_factor +created$/)
  assert.match(row ?? '', new RegExp(`^${acme.id}  ${acme.slug} +Acme +2 +optional +2`))
  assert.deepEqual(others, [])
  assert.equal(JSON.parse((await run('list', '--json')).stdout).length, 2)
  assert.match((await run('list', '--limit', '1')).stderr, /only the first 1 organizations/)

  for (const name of [acme.id, acme.slug]) {
    const members = JSON.parse((await run('members', name, '--json')).stdout)
    assert.deepEqual(
      members.map(({ user, role }: { user: string; role: string }) => [user, role]),
      [
        [ada.id, 'owner'],
        [bea.id, 'member'],
      ],
    )
  }
  const unknown = await run('members', 'nowhere')
  assert.deepEqual([unknown.code, unknown.stderr], [1, 'There is no organization nowhere.\n'])
})
