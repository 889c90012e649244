import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { createKey } from '#gateway/keys/keys.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { builtInNames } from '#kernel/db/built-in-databases.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { openDatabases } from '#startup/open-databases.ts'
import { dropInstallations, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { ADMIN_KEY, actor, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { startService } from './app.ts'

/** The service after its first start on a server, with the one setting. */
const control = (await testDatabase({ isControl: true })).name
const names = builtInNames(control)
const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-built-in-'))
const url = Object.assign(new URL(testServerUrl()), { pathname: `/${control}` }).href
const base = defaultConfig({
  database: { url },
  server: { port: 0, data_dir: dir },
  auth: { password: { memory: 1_024, iterations: 1 } },
})
const [given] = Object.values(
  defaultConfig({ clients: { default: { row_level_security: { enabled: true } } } }).clients,
)
assert.ok(given)
const config = { ...base, clients: { default: given } }
const secrets = createSecrets(TEST_SECRET, secureRandom)
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
const origin = `http://127.0.0.1:${await service.listen()}`

after(async () => {
  await service.stop()
  await removeFolder(dir)
  await dropInstallations(control)
})

const keyWith = async (rights: readonly string[]) =>
  (
    await createKey(
      service.kernel,
      { configured: new Set(['default']) },
      { name: 'k', client_name: 'default', rights },
    )
  ).api_key

test('the built-in client needs only one setting for row-level security: its roles exist from the first start', async () => {
  const operator = actor(origin, {
    apikey: await keyWith(['*', 'gateway.bypass_row_level_security']),
    'x-service-client': 'default',
  })
  const { body } = await actor(origin).post('/api/auth/sign-up/email', {
    name: 'Ada',
    email: 'ada@example.com',
    password: PASSWORD,
  })
  const made = await operator.post('/query/sql', {
    driver: 'postgresql',
    query: `create table doc (id int primary key, owner text);
      insert into doc values (1, '${body.user.id}'), (2, 'another');
      alter table doc enable row level security;
      grant select on doc to "${names.anonymous}", "${names.signedIn}";
      create policy own on doc using (owner = current_setting('request.claims')::json ->> 'user_id')`,
  })
  assert.equal(made.status, 200, made.text)
  const apikey = await keyWith(['doc.read'])
  const docs = async (session: Record<string, string>) => {
    const page = actor(origin, { apikey, 'x-service-client': 'default', ...session })
    const answer = await page.post('/gateway/fetch', { table_name: 'doc', columns: ['id'] })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data.map(({ id }: { id: number }) => id)
  }
  assert.deepEqual(await docs({ 'x-service-auth-session-token': body.token }), [1])
  assert.deepEqual(await docs({}), [])
  const all = await operator.post('/gateway/fetch', { table_name: 'doc', columns: ['id'] })
  assert.equal(all.body.data.length, 2)
})

test('the roles cannot log in, and own nothing of the client before their first statement', async () => {
  const { rows } = await withClient(testServerUrl(), (client) =>
    client.query(
      `select rolname, rolcanlogin or rolsuper or rolbypassrls or rolcreaterole as power from pg_roles
        where rolname in ($1, $2)`,
      [names.anonymous, names.signedIn],
    ),
  )
  assert.deepEqual(
    rows.map(({ power }) => power),
    [false, false],
  )
})
