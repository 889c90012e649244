import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate } from '#kernel/db/migrate.ts'
import { startCrashableServer } from '#test/crashable-server.ts'
import { withClient } from '#test/database.ts'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'

const cleanups: (() => Promise<void>)[] = []
const server = await startCrashableServer({ after: (clean) => void cleanups.push(clean) }, 'select 1')
await migrate(server.url)
const many = { requests: 1_000_000, window: 60_000 }
const t = await testService({
  controlUrl: server.url,
  config: {
    rate_limits: { enabled: true, rules: { sign_up: many, sign_in: many, default: many } },
    auth: { email: { send_on_sign_up: true } },
  },
})

// Stop the service first, then its database.
after(async () => {
  await t.stop()
  for (const clean of cleanups) await clean()
})

let people = 0
const acknowledged: string[] = []

async function signUp(): Promise<Answer> {
  const email = `ada-${++people}@example.com`
  const answer = await t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD })
  if (answer.status !== 200) return answer
  acknowledged.push(email)
  return t.anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${answer.body.token}` } })
}

async function isBack(): Promise<number> {
  const began = performance.now()
  while ((await signUp()).status !== 200 || (await t.anon.get('/health/ready')).status !== 200) {
    assert.ok(performance.now() - began < 60_000, 'the service did not recover')
    await sleep(20)
  }
  return performance.now() - began
}

for (const mode of ['fast', 'immediate'] as const)
  test(`a restart of the control database with -m ${mode} under load causes only 503, and loses no acknowledged write`, async () => {
    await isBack()
    const statuses = new Map<number, number>()
    let isStopped = false
    const caller = async () => {
      while (!isStopped) {
        const { status } = await signUp()
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status !== 200) await sleep(20)
      }
    }
    const callers = Promise.all(Array.from({ length: 12 }, caller))
    await sleep(300)
    await server.stop(mode)
    await sleep(200)
    await server.start()
    await isBack()
    isStopped = true
    await callers
    assert.deepEqual([...statuses.keys()].sort(), [200, 503])
    const existing = await withClient(server.url, async (client) => {
      return new Set((await client.query('select email from service."user"')).rows.map(({ email }) => email))
    })
    assert.deepEqual(
      acknowledged.filter((email) => !existing.has(email)),
      [],
    )
  })
