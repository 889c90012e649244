import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { ADMIN_KEY, actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { readOnceConnected } from '#test/stream-ends.ts'
import { createTemporaryHome, startProgram } from './program.ts'

test('a revocation ends streams of each worker and of another process, and their transactions, within two seconds', {
  timeout: 300_000,
}, async (t) => {
  const suffix = randomBytes(4).toString('hex')
  const roles = [`anon_${suffix}`, `authenticated_${suffix}`] as const
  const database = await testDatabase()
  const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
  const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
  await onServer(`create role ${roles[0]} nologin; create role ${roles[1]} nologin;
    grant ${roles.join()} to "${new URL(database.url).username}"`)
  await sql(`create view big as select n as id, repeat('x', 500000) as text from generate_series(1, 200) n;
    grant select on big to ${roles.join()}`)
  const controlUrl = await controlDatabase()
  const env = {
    DATABASE_URL: controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_SERVER__WORKERS: '2',
    SERVICE_CLIENTS__APP__URL: database.url,
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ENABLED: 'true',
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ANONYMOUS_ROLE: roles[0],
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__SIGNED_IN_ROLE: roles[1],
    SERVICE_AUTH__PASSWORD__MEMORY: '1024',
    SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
  }
  const start = async () => {
    const home = await createTemporaryHome()
    const program = await startProgram(home.folder, env)
    t.after(async () => {
      await program.end('SIGTERM')
      await home.remove()
    })
    return program
  }
  const programs = [await start(), await start()] as const
  t.after(async () => {
    await database.drop()
    await onServer(`drop role ${roles[0]}; drop role ${roles[1]}`)
  })
  const [{ url }] = programs
  const operator = actor(url, { apikey: ADMIN_KEY })
  const ok = async (asked: ReturnType<typeof operator.get>) => {
    const answer = await asked
    assert.ok(answer.status < 300, answer.text)
    return answer.body
  }
  const keyFor = async (client_name: string) => {
    const made = await ok(operator.post('/admin/api-keys', { name: 'reader', client_name, rights: ['*'] }))
    return {
      id: made.data.record.id as string,
      headers: { apikey: made.data.api_key as string, 'x-service-client': client_name },
    }
  }
  const signUp = async (name: string) => {
    const body = { name, email: `${name}@example.com`, password: PASSWORD }
    const { token, user } = await ok(operator.post('/api/auth/sign-up/email', body))
    return { id: user.id as string, session: { authorization: `Bearer ${token}` } }
  }
  const [root, ada, bea] = [await signUp('root'), await signUp('ada'), await signUp('bea')]
  await withClient(controlUrl, (client) =>
    client.query(`update service."user" set role = 'admin' where id = $1`, [root.id]),
  )
  const running = async () =>
    (
      await sql(`select from pg_stat_activity where datname = current_database() and application_name ~ '^gatehouse (app|branch)'
      and state <> 'idle'`)
    ).length
  const branch = async (name: string) => {
    await ok(operator.post('/admin/clients', { client_name: name, url: database.url }))
    return keyFor(name)
  }
  const key = await keyFor('app')
  const [deleted, lowered, frozen, dropped] = [
    await keyFor('app'),
    await keyFor('app'),
    await branch('branch-1'),
    await branch('branch-2'),
  ]
  const onKey = ({ id }: { readonly id: string }) => `/admin/api-keys/${id}`
  const cases: Readonly<
    Record<string, readonly [headers: Record<string, string>, end: () => Promise<unknown>]>
  > = {
    key: [deleted.headers, () => operator.send('DELETE', onKey(deleted))],
    rights: [
      lowered.headers,
      () => operator.send('PATCH', onKey(lowered), { body: { rights: ['other.read'] } }),
    ],
    session: [
      { ...key.headers, ...ada.session },
      () => operator.post('/api/auth/sign-out', {}, { headers: ada.session }),
    ],
    ban: [
      { ...key.headers, ...bea.session },
      () => operator.post('/api/auth/admin/ban-user', { userId: bea.id }, { headers: root.session }),
    ],
    freeze: [
      frozen.headers,
      () => operator.send('PUT', '/admin/clients/branch-1/freeze', { body: { is_frozen: true } }),
    ],
    drop: [dropped.headers, () => operator.send('DELETE', '/admin/clients/branch-2')],
  }
  for (const [name, [headers, end]] of Object.entries(cases)) {
    // New connections, which the primary of the first program gives to its two workers in turn.
    const at = [url, url, url, url, programs[1].url, programs[1].url]
    const call = { headers, body: { table_name: 'big' } }
    const asked = performance.now()
    const streams = await Promise.all(at.map((url) => readOnceConnected(`${url}/gateway/fetch`, call)))
    assert.equal(await running(), streams.length, name)
    // The same processes do about as much to begin the streams as to end them.
    const slack = 10 * (performance.now() - asked)
    await ok(end() as ReturnType<typeof operator.get>)
    const began = performance.now()
    while ((await running()) > 0) {
      assert.ok(performance.now() - began < 2_000 + slack, `${name}: a stream still has its connection`)
      await sleep(20)
    }
    for (const stream of streams) {
      stream.hurry()
      assert.equal(await stream.end, 'cut', name)
    }
  }
})
