import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'

const MARK = 'marked-secret-of-the-tests'
/** Nothing listens there. */
const NOWHERE = '127.0.0.1:1'

const t = await testService({
  config: {
    clients: {
      gone: { url: `postgres://gone:${MARK}-client@${NOWHERE}/gone?application_name=${MARK}-query` },
      held: { driver: 'supabase', url: `http://:${MARK}-key@${NOWHERE}/rest/${MARK}-path` },
    },
    mail: { transport: 'smtp', smtp_url: `smtp://sender:${MARK}-mail@${NOWHERE}` },
    metrics: { token: `${MARK}-token` },
    auth: { admin: { roles: { settings: { operator: ['settings'] } } } },
  },
})
const operator = byBearer(t, await operatorOf(t, 'settings'))

type Setting = { setting: string; value: string | null; default: string | null; source: string }

test('every setting is shown with its value, default and source, and no secret', async () => {
  const { status, body, text } = await operator.get('/admin/settings')
  assert.equal(status, 200, text)
  const all = new Map((body.data.settings as Setting[]).map((one) => [one.setting, one]))
  assert.deepEqual(all.get('session.expires_in'), {
    setting: 'session.expires_in',
    value: '7d',
    default: '7d',
    absent: null,
    source: 'default',
    is_secret: false,
  })
  assert.equal(all.get('metrics.token')?.value, '***')
  assert.equal(all.get('clients.gone.url')?.value, `postgres://gone:***@${NOWHERE}/gone?***`)
  assert.equal(all.get('auth.admin.roles.settings.operator')?.value, 'settings')
  assert.ok(!text.includes(MARK), text)
})

test('the admin key opens both, and a key of a client neither', async () => {
  const key = await t.key(['*'])
  for (const path of ['/admin/settings', '/admin/doctor']) {
    assert.equal((await t.admin.get(path)).status, 200, path)
    assert.equal((await key.get(path)).status, 403, path)
    assert.equal((await t.anon.get(path)).status, 401, path)
  }
})
