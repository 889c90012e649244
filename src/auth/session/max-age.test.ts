import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'

const DAY = 86_400_000
const MAX_AGE = 10 * DAY

const t = await testService({ config: { session: { max_age: MAX_AGE } } })

test('a session that is used every day ends at session.max_age, and so does its cookie', async () => {
  const ada = await t.signUp('Ada')
  const headers = { cookie: `service-auth.session-token=${ada.token}` }
  const began = Date.parse((await ada.get('/api/auth/get-session')).body.session.createdAt)
  for (let day = 1; day < 10; day++) {
    t.advance(DAY)
    const answer = await t.anon.get('/api/auth/get-session', { headers })
    assert.equal(answer.status, 200, `day ${day}`)
    const left = Date.parse(answer.body.session.expiresAt) - began
    assert.ok(left <= MAX_AGE, `${left}`)
    const [, maxAge] = /Max-Age=(\d+)/.exec(answer.headers.get('set-cookie') ?? '') ?? []
    assert.ok(maxAge === undefined || Number(maxAge) * 1_000 <= MAX_AGE - day * DAY, `${maxAge}`)
  }
  t.advance(DAY)
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
})

test('a session that cannot be extended any more is not written again', async () => {
  const ada = await t.signUp('Ada')
  const { db } = t.service.kernel
  const updatedAt = async () =>
    (await db.selectFrom('session').select('updatedAt').where('userId', '=', ada.id).executeTakeFirst())
      ?.updatedAt
  t.advance(5 * DAY)
  await ada.get('/api/auth/get-session')
  const last = await updatedAt()
  t.advance(2 * DAY)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.deepEqual(await updatedAt(), last)
})

test('a lowered session.max_age holds for older sessions, and 0 means no bound', async () => {
  const ada = await t.signUp('Ada')
  const lower = await testService({ controlUrl: t.controlUrl, config: { session: { max_age: DAY } } })
  const free = await testService({ controlUrl: t.controlUrl, config: { session: { max_age: 0 } } })
  const get = ({ anon }: typeof t, path: string) =>
    anon.get(path, { headers: { authorization: `Bearer ${ada.token}` } })
  // The clocks of the three services differ by what was advanced above.
  const ahead = t.service.kernel.now().getTime() - lower.service.kernel.now().getTime()
  for (const service of [lower, free]) service.advance(ahead)

  const { session } = (await get(lower, '/api/auth/get-session')).body
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), DAY)
  assert.equal((await get(lower, '/api/auth/list-sessions')).body.length, 1)
  lower.advance(DAY + 1_000)
  assert.equal((await get(lower, '/api/auth/get-session')).status, 401)

  for (let week = 0; week < 20; week++) {
    free.advance(6 * DAY)
    assert.equal((await get(free, '/api/auth/get-session')).status, 200, `week ${week}`)
  }
})
