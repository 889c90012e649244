import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '#test/embedded.ts'
import { actor, PASSWORD } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'
import { createTemporaryHome, type Program, runProgram, startProgram } from './program.ts'

test('acknowledged writes survive a stop, and a kill -9 during writes', async (t) => {
  const home = await createTemporaryHome()
  const programs: Program[] = []
  const start = async () => {
    // One setting is enough: the two roles it needs exist from the first start.
    const env = { SERVICE_CLIENTS__DEFAULT__ROW_LEVEL_SECURITY__ENABLED: 'true' }
    const program = await startProgram(home.folder, env)
    programs.push(program)
    return program
  }
  t.after(async () => {
    for (const program of programs) await program.end('SIGKILL')
    await home.remove()
  })

  const first = await start()
  const keyed = async ({ url }: Program) =>
    actor(url, { apikey: await home.key(), 'x-service-client': 'default' })
  const signedUp = await actor(first.url).post('/api/auth/sign-up/email', {
    name: 'Ada',
    email: 'ada@example.com',
    password: PASSWORD,
  })
  const headers = { authorization: `Bearer ${signedUp.body.token}` }
  const made = await (await keyed(first)).post('/management/tables', {
    table_name: 'marks',
    columns: [{ name: 'mark', data_type: 'integer', unique: true }],
  })
  assert.equal(made.status, 200, made.text)
  assert.equal(await first.end('SIGTERM'), 0)
  assert.equal(first.output().match(/"event":"ready"/g)?.length, 1)

  const second = await start()
  assert.equal((await actor(second.url).get('/api/auth/get-session', { headers })).status, 200)
  const answered = await writeUntilKilled(await keyed(second), second)

  const third = await start()
  const { body } = await (await keyed(third)).post('/gateway/fetch', {
    table_name: 'marks',
    columns: ['mark'],
    limit: 10_000,
  })
  const found = new Set(body.data.map(({ mark }: { mark: number }) => mark))
  assert.deepEqual(
    answered.filter((mark) => !found.has(mark)),
    [],
  )
  // As by Ctrl-C in a terminal: npm passes on the signal that the terminal has sent to the process too.
  third.child.kill('SIGINT')
  await sleep(20)
  assert.equal(await third.end('SIGINT'), 0)
})

/** Kills the process while eight writers run, after 100 acknowledged writes. Returns all acknowledged writes. */
async function writeUntilKilled(key: ReturnType<typeof actor>, program: Program): Promise<number[]> {
  const answered: number[] = []
  let next = 0
  const writer = async () => {
    for (;;) {
      const mark = next++
      const answer = await key
        .post('/gateway/insert', { table_name: 'marks', insert_body: { mark } })
        .catch(() => undefined)
      if (answer === undefined) return
      if (answer.status === 200) answered.push(mark)
      if (answered.length === 100) program.child.kill('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: 8 }, writer))
  return answered
}

test('a second start on the same folder fails without disturbing the first; production warns about the outbox', async (t) => {
  const home = await createTemporaryHome()
  const production = {
    NODE_ENV: 'production',
    SERVICE_SECRET: 's'.repeat(40),
    SERVICE_KEY_12: 'k'.repeat(40),
  }
  const first = await startProgram(home.folder, production)
  t.after(async () => {
    await first.end('SIGTERM')
    await home.remove()
  })
  assert.match(first.output(), /"event":"advice".*Mail stays in the outbox and is not delivered/)
  await assert.rejects(
    startProgram(home.folder, production),
    /already runs on .*\/data\/postgres \(process \d+\)/,
  )
  // Checks the database of the running service without starting another.
  const check = (env: Record<string, string>) => runProgram(home.folder, ['config', 'check'], env)
  const [right, foreign] = [
    await check(production),
    await check({ ...production, SERVICE_SECRET: 'f'.repeat(40) }),
  ]
  assert.deepEqual(right, { code: 0, stdout: 'The configuration is valid.\n', stderr: '' })
  assert.equal(foreign.code, 1)
  assert.match(
    foreign.stderr,
    /^The control database gatehouse belongs to an installation with another secret/,
  )
  assert.equal((await readiness(actor(first.url))).status, 200)
})

test('a second Ctrl-C ends the service while it waits for a request', async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder)
  t.after(async () => {
    await program.end('SIGKILL')
    await home.remove()
  })
  const key = actor(program.url, { apikey: await home.key(), 'x-service-client': 'default' })
  const query = (text: string) => key.post('/gateway/query', { query: text })
  query('select pg_sleep(20)').catch(() => {})
  const sleepers = `select from pg_stat_activity where datname = current_database() and query = 'select pg_sleep(20)' and state = 'active'`
  while ((await query(sleepers)).body.data.length === 0) await sleep(20)
  program.child.kill('SIGINT')
  await eventually(() => program.output().includes('"event":"stopping"'))
  // A signal that follows at once counts as the same one.
  await sleep(1_200)
  assert.equal(await program.end('SIGINT'), 1)
})
