import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { fromNetwork, type HookReply, heldReply, OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { readiness } from '#test/readiness.ts'

const elsewhere: string[] = []
const { url: other } = await startLoopbackServer((request, response) => {
  elsewhere.push(request.url ?? '')
  response.end('{}')
})
const hook = await startHookReceiver()
const service = (settings: object, database: object = {}): Promise<TestService> =>
  testService({
    config: {
      outbound: OUTBOUND,
      rate_limits: { enabled: false },
      server: { trusted_proxies: ['127.0.0.1'] },
      database,
      auth: {
        anonymous: { enabled: true },
        hooks: { mine: hook.settings({ on: ['sign_in'], ...settings }) },
      },
    },
  })
const refusing = await service({})
const allowing = await service({ on_failure: 'allow' })
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const enter = (t: TestService, network = 0) =>
  t.anon.post('/api/auth/sign-in/anonymous', {}, fromNetwork(network))
const UNAVAILABLE = [503, 'HOOK_UNAVAILABLE']
const metric = async (t: TestService, outcome: string): Promise<number> => {
  const { text } = await t.admin.get('/metrics')
  const [, value] =
    new RegExp(`^gatehouse_hook_calls_total{hook="mine",outcome="${outcome}"} (\\d+)$`, 'm').exec(text) ?? []
  return Number(value ?? 0)
}
const SECRET_WORD = 'quidnunc'

const FAILURES: Readonly<Record<string, HookReply>> = {
  'status 500': (response) => response.writeHead(500).end('{}'),
  'status 204': (response) => response.writeHead(204).end(),
  'status 201': (response) => response.writeHead(201).end('{}'),
  'a redirect': (response) => response.writeHead(307, { location: other }).end(),
  'no JSON': (response) => response.end(`<p>${SECRET_WORD}</p>`),
  'broken UTF-8': (response) => response.end(Buffer.from([0x7b, 0xff, 0x7d])),
  'no object': (response) => response.end('[]'),
  null: (response) => response.end('null'),
  'an empty body': (response) => response.end(),
  'too much': (response) => response.end(`{}${' '.repeat(65_536)}`),
  'an unknown decision': { decision: 'deny' },
  'an unknown member': { [SECRET_WORD]: true },
  'a message that refuses nothing': { message: SECRET_WORD },
  'fields before a sign-in': { fields: {} },
  'claims before a sign-in': { claims: {} },
  'a broken connection': (response) => response.destroy(),
}

for (const [name, reply] of Object.entries(FAILURES))
  test(`${name} is a failure: it refuses, or lets pass where the settings say so`, async () => {
    hook.reply(reply)
    const counts = [await metric(refusing, 'failed'), await metric(allowing, 'failed')]
    const refused = await enter(refusing)
    assert.deepEqual(codeOf(refused), UNAVAILABLE)
    assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]/)
    assert.equal((await enter(allowing)).status, 200)
    assert.deepEqual(
      [await metric(refusing, 'failed'), await metric(allowing, 'failed')],
      counts.map((count) => count + 1),
    )
    for (const { log } of [refusing, allowing]) {
      assert.ok(log.some((line) => line.includes('"hook_failed"')))
      assert.ok(!log.some((line) => line.includes(SECRET_WORD)), 'the log has nothing of an answer')
    }
    assert.deepEqual(elsewhere, [], 'no redirect is followed')
  })

test('nothing at the address, an address that the rules forbid, and silence are failures', async () => {
  hook.reply(heldReply().reply)
  for (const settings of [
    { url: 'http://127.0.0.1:1/hook' },
    { url: 'http://127.0.0.2/hook' },
    { timeout: 100 },
  ]) {
    assert.deepEqual(codeOf(await enter(await service(settings))), UNAVAILABLE, JSON.stringify(settings))
    const lenient = await service({ ...settings, on_failure: 'allow' })
    assert.equal((await enter(lenient)).status, 200, JSON.stringify(settings))
  }
})

test('a refusal has the message of the hook, or ours where that is no line of text', async () => {
  const messageOf = async (message: unknown) => {
    hook.reply({ decision: 'refuse', message })
    const answer = await enter(allowing)
    assert.deepEqual(codeOf(answer), [403, 'REFUSED_BY_HOOK'])
    return answer.body.message
  }
  assert.equal(await messageOf('Nur für Mitglieder <b>'), 'Nur für Mitglieder <b>')
  const ours = await messageOf(undefined)
  for (const odd of ['', 'x'.repeat(201), 'two\nlines', 'a\u202eb', 7, null, ['x']])
    assert.equal(await messageOf(odd), ours)
  hook.reply({ decision: 'refuse', claims: 1, [SECRET_WORD]: 2 })
  assert.equal((await enter(allowing)).status, 403, 'a refusal counts, whatever else the answer has')
})

test('a hook hears who signs in and how, and the audit trail shows a refusal with its hook', async () => {
  const t = await service({})
  const { kernel } = t.service
  hook.reply({})
  const ada = await t.signUp('Ada')
  hook.reply(REFUSE)
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  assert.deepEqual(codeOf(await signIn()), [403, 'REFUSED_BY_HOOK'])
  assert.partialDeepStrictEqual(hook.calls.at(-1)?.data, {
    user: {
      id: ada.id,
      email: ada.email,
      email_verified: false,
      name: 'Ada',
      role: 'user',
      is_anonymous: false,
    },
    method: 'password',
    amr: ['pwd'],
    ip_address: '127.0.0.1',
  })
  const rows = await kernel.db
    .selectFrom('auditEvent')
    .select(['action', 'targetId', 'outcome', 'details', 'actorId', 'ipAddress'])
    .where('outcome', '=', 'failure')
    .execute()
  assert.deepEqual(rows, [
    {
      action: 'sign_in.failed',
      targetId: ada.id,
      outcome: 'failure',
      details: { reason: 'REFUSED_BY_HOOK', hook: 'mine' },
      actorId: 'anonymous',
      ipAddress: '127.0.0.1',
    },
  ])
})

test('hooks are called in the order of the settings, and the first refusal ends it', async () => {
  const second = await startHookReceiver()
  const t = await testService({
    config: {
      outbound: OUTBOUND,
      auth: {
        anonymous: { enabled: true },
        hooks: { zulu: hook.settings({ on: ['sign_in'] }), alpha: second.settings({ on: ['sign_in'] }) },
      },
    },
  })
  hook.taken()
  hook.reply({})
  second.reply(REFUSE)
  assert.equal((await enter(t)).status, 403)
  assert.deepEqual([hook.taken().length, second.taken().length], [1, 1])
  hook.reply(REFUSE)
  second.reply({})
  assert.equal((await enter(t)).status, 403)
  assert.deepEqual([hook.taken().length, second.taken().length], [1, 0])
})

test('a slow hook holds no connection of the database, and no more calls at once than its share', async () => {
  const t = await service({}, { max_connections: 2 })
  hook.reply({})
  const ada = await t.signUp('Ada')
  let seen = await whileHeld(t, ada)
  // Again when a busy machine held calls so long that some had no answer in time.
  while (seen.statuses.includes(503)) seen = await whileHeld(t, ada)
  assert.deepEqual(seen, { statuses: [200], most: 32 })
})

/** Statuses of forty sign-ins whose hook is slow, and the most calls of it at once. Others are served meanwhile. */
async function whileHeld(t: TestService, ada: Actor) {
  const held = heldReply()
  let [running, most] = [0, 0]
  hook.reply(async (response, call) => {
    most = Math.max(most, ++running)
    if (typeof held.reply === 'function') await held.reply(response, call)
    running--
  })
  const waiting = Array.from({ length: 40 }, (_, network) => enter(t, network))
  await held.waiting(32)
  const act = await ada.post('/api/auth/update-user', { name: 'Ada II' })
  assert.equal(act.status, 200)
  assert.equal((await readiness(t.anon)).status, 200)
  held.letGo()
  const statuses = [...new Set((await Promise.all(waiting)).map(({ status }) => status))]
  return { statuses, most }
}
