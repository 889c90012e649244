import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { startProgram, temporaryHome } from './program.ts'

/** A connection that is kept: the primary gave it to one worker, and there it stays. */
function connection(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const status = (token: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` }
      const asked = request(`${url}/api/auth/get-session`, { agent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      asked.on('error', reject).end()
    })
  return { status, close: () => agent.destroy() }
}

test('a session revoked in one worker is refused in every other as soon as the revoke has answered', {
  timeout: 120_000,
}, async (t) => {
  const home = await temporaryHome()
  const program = await startProgram(home.folder, {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__WORKERS: '2',
    SERVICE_AUTH__PASSWORD__MEMORY: '1024',
    SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
  })
  const connections = Array.from({ length: 8 }, () => connection(program.url))
  t.after(async () => {
    for (const { close } of connections) close()
    await program.end('SIGTERM')
    await home.remove()
  })

  const anon = actor(program.url)
  await anon.post('/api/auth/sign-up/email', { name: 'Ada', email: 'ada@example.com', password: PASSWORD })
  for (let round = 0; round < 30; round++) {
    const { body } = await anon.post('/api/auth/sign-in/email', {
      email: 'ada@example.com',
      password: PASSWORD,
    })
    // Every worker has it in memory now.
    const before = await Promise.all(connections.map(({ status }) => status(body.token)))
    assert.deepEqual(new Set(before), new Set([200]))
    const signedOut = await anon.post(
      '/api/auth/sign-out',
      {},
      { headers: { authorization: `Bearer ${body.token}` } },
    )
    assert.equal(signedOut.status, 200)
    const after = await Promise.all(connections.map(({ status }) => status(body.token)))
    assert.deepEqual(new Set(after), new Set([401]), `round ${round}`)
  }

  const metrics = await anon.get('/metrics', { headers: { apikey: await adminKey(home.folder) } })
  const counted =
    /gatehouse_http_requests_total\{[^}]*route="\/api\/auth\/get-session"[^}]*status="401"[^}]*\} (\d+)/.exec(
      metrics.text,
    )
  assert.equal(Number(counted?.[1]), 240, 'the metrics are those of both workers')
})

async function adminKey(folder: string): Promise<string> {
  return (await readFile(`${folder}/data/admin-key`, 'utf8')).trim()
}
