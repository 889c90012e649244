import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type Answer, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { fromNetwork, type HookCall, heldReply, OUTBOUND, startHookReceiver } from '#test/hooks.ts'

const hook = await startHookReceiver()
const service = (settings: object, more: object = {}): Promise<TestService> =>
  testService({
    config: {
      outbound: OUTBOUND,
      rate_limits: { enabled: false },
      server: { trusted_proxies: ['127.0.0.1'] },
      auth: {
        anonymous: { enabled: true },
        hooks: { mine: hook.settings({ on: ['sign_in'], on_failure: 'allow', ...settings }) },
      },
      ...more,
    },
  })
const enter = (t: TestService, ask: object): Promise<Answer> =>
  t.anon.post('/api/auth/sign-in/anonymous', {}, ask)
const UNAVAILABLE = [503, 'HOOK_UNAVAILABLE']
/** One of the addresses of one network. */
const neighbour = (index: number) => ({ headers: { 'x-forwarded-for': `2001:db8::${index.toString(16)}` } })
const isNeighbour = ({ data }: HookCall) => data.ip_address.startsWith('2001:db8::')

test('one network fills no hook: it has four calls at once, and those that find no room are refused also with allow', async () => {
  const t = await service({})
  const held = heldReply()
  hook.reply(held.reply)
  const before = hook.calls.length
  const waiting = Array.from({ length: 50 }, (_, index) => enter(t, neighbour(index)))
  const { status, body, headers } = await Promise.race(waiting)
  assert.deepEqual([status, body.code], UNAVAILABLE, 'the hook has answered nobody yet')
  assert.match(headers.get('retry-after') ?? '', /^[1-9]/)
  const others = [enter(t, fromNetwork(1)), enter(t, fromNetwork(2))]
  await held.waiting(6)
  const heard = () => hook.calls.slice(before).filter(isNeighbour).length
  assert.equal(heard(), 4)
  held.letGo()
  for (const other of others) assert.equal((await other).status, 200)
  const entered = (await Promise.all(waiting)).filter((answer) => answer.status === 200)
  assert.equal(entered.length, heard(), 'nobody has passed unasked')
})

test('a flood of sign-ups takes no place of a sign-in', async () => {
  const t = await service({ on: ['sign_up', 'sign_in'] })
  hook.reply({})
  const ada = await t.signUp('Ada')
  const held = heldReply()
  hook.reply(held.reply)
  const flood = Array.from({ length: 6 }, (_, index) => enter(t, neighbour(index)))
  await held.waiting(4)
  const signIn = t.anon.post(
    '/api/auth/sign-in/email',
    { email: ada.email, password: PASSWORD },
    neighbour(99),
  )
  await Promise.race([held.waiting(5), signIn])
  assert.equal(hook.calls.at(-1)?.type, 'before.sign_in')
  held.letGo()
  assert.equal((await signIn).status, 200)
  await Promise.all(flood)
})

test('each call has a connection of its own: the server cannot close one that is kept just as the next call comes', async () => {
  const t = await service({})
  const ports: unknown[] = []
  hook.reply((response) => {
    ports.push(response.req.socket.remotePort, response.req.headers.connection)
    response.end('{}')
  })
  assert.equal((await enter(t, {})).status, 200)
  assert.equal((await enter(t, {})).status, 200)
  const [first, ...others] = ports
  assert.deepEqual(others.toSpliced(1, 1), ['close', 'close'])
  assert.notEqual(first, others[1])
})

test('a call that ends because the service stops lets nobody pass', async () => {
  const t = await service({}, { limits: { shutdown: 1_000 } })
  const held = heldReply()
  hook.reply(held.reply)
  const cutOff = assert.rejects(enter(t, {}))
  await held.waiting(1)
  await t.stop()
  await cutOff
  held.letGo()
  const failed = () => t.log.map((line) => JSON.parse(line)).filter(({ event }) => event === 'hook_failed')
  await eventually(() => failed().length > 0)
  assert.deepEqual(
    failed().map(({ effect, reason }) => [effect, reason]),
    [['refuse', 'the service stops']],
  )
  const { rows } = await withClient(t.controlUrl, (client) => client.query('select id from service.session'))
  assert.deepEqual(rows, [])
})
