import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { createDoctor } from './running-doctor.ts'

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
    outbound: { allow_networks: ['127.0.0.0/8'], allow_http: true },
  },
  doctor: (context, databases) => createDoctor(context, databases),
})
const operator = byBearer(t, await operatorOf(t, 'settings'))

test('findings are those of the checks, with the problem and no secret', async () => {
  const { status, body, text } = await operator.get('/admin/doctor')
  assert.equal(status, 200, text)
  assert.equal(body.data.healthy, false)
  const findings = body.data.findings as { subject: string; ok: boolean; says: string }[]
  const of = (subject: string) => findings.find((finding) => finding.subject === subject)
  assert.deepEqual(of('database'), { subject: 'database', ok: true, says: 'PostgreSQL of the tests' })
  assert.equal(of('client default')?.ok, true, text)
  const gone = of('client gone')
  assert.equal(gone?.ok, false, text)
  assert.match(gone?.says ?? '', /clients\.gone\.url: nothing listens at 127\.0\.0\.1:1/)
  assert.equal(of('client held')?.ok, false, text)
  assert.equal(of('mail')?.ok, false, text)
  assert.ok(!text.includes(MARK), text)
})
