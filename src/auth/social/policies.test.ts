import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { testService } from '#test/harness.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import {
  CLIENT,
  createVisitor,
  oidcSettings,
  person,
  register,
  TO_LOOPBACK,
} from '#test/identity-provider/visits.ts'

const idp = await startOpenidProvider()
/** Takes connections and never answers. */
const silent = createServer(() => {})
await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening))
after(() => silent.close().closeAllConnections())
// The library types the address of any kind of server.
const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`

const t = await testService({
  config: {
    outbound: TO_LOOPBACK,
    auth: {
      hide_registered_emails: true,
      email_password: { require_email_verification: true },
      social: {
        providers: {
          acme: oidcSettings(idp),
          silent: { type: 'oidc', issuer: silentUrl, client_id: CLIENT.id },
        },
        sign_up: 'requested',
      },
    },
  },
})
register(t, idp, ['acme'])
const { db } = t.service.kernel
const usersWith = (email: string) => db.selectFrom('user').selectAll().where('email', '=', email).execute()
const mailsTo = async (email: string) =>
  (await t.mails()).filter((mail) => mail.includes(`To: ${email}`)).length

test('only a request that says so adds a user', async () => {
  idp.visitor = person('Asked')
  const { email = '' } = idp.visitor
  assert.equal(await createVisitor(t).signIn(), '/failed?error=signup_disabled')
  assert.deepEqual(await usersWith(email), [])
  assert.equal(await createVisitor(t).signIn({ requestSignUp: true }), '/app')
  assert.equal(await createVisitor(t).signIn(), '/app', 'the account is known by now')
})

test('an address that is only claimed has to be verified first, and does not show whether it has an account', async () => {
  idp.visitor = person('Claimed', { email_verified: false })
  const { sub, email = '' } = idp.visitor
  const visitor = createVisitor(t)
  const outcomes = async (claimed: string) => {
    idp.visitor = { sub: `${sub}-${claimed}`, email: claimed, email_verified: false }
    const targets: string[] = []
    for (const asked of [{}, { requestSignUp: true }, { requestSignUp: true }])
      targets.push(await visitor.signIn(asked))
    return { targets, mails: await mailsTo(claimed), session: await visitor.whoAmI() }
  }
  const fresh = await outcomes(email)
  assert.deepEqual(fresh, {
    targets: [
      '/failed?error=signup_disabled',
      '/failed?error=email_not_verified',
      '/failed?error=email_not_verified',
    ],
    mails: 2,
    session: undefined,
  })
  const proven = person('Proven')
  idp.visitor = proven
  await createVisitor(t).signIn({ requestSignUp: true })
  assert.deepEqual(await outcomes(proven.email ?? ''), fresh)
  const [owner] = await usersWith(proven.email ?? '')
  const accounts = await db
    .selectFrom('account')
    .selectAll()
    .where('userId', '=', owner?.id ?? '')
    .execute()
  assert.equal(accounts.length, 1)
})

test('a provider that hangs slows no one else, and its circuit refuses the next requests at once', async () => {
  const ask = () => t.anon.post('/api/auth/sign-in/social', { provider: 'silent' })
  const began = performance.now()
  let isAnswered = false
  const waiting = Promise.all(Array.from({ length: 40 }, ask)).finally(() => {
    isAnswered = true
  })
  idp.visitor = person('Quick')
  assert.equal(await createVisitor(t).signIn({ requestSignUp: true }), '/app')
  assert.equal((await t.anon.get('/api/auth/ok')).status, 200)
  assert.equal(isAnswered, false, 'while the others wait')
  const answers = await waiting
  assert.deepEqual(
    new Set(answers.map(({ status, body }) => `${status} ${body.code}`)),
    new Set(['503 PROVIDER_UNAVAILABLE']),
  )
  assert.ok(performance.now() - began < 30_000, 'one deadline for all, and not one after the other')
  // On a slow machine the circuit may be half open by now, and let one of them try. Then it is open for longer.
  let took = Number.POSITIVE_INFINITY
  for (let round = 0; took > 4_000 && round < 4; round++) {
    const again = performance.now()
    const refused = await ask()
    assert.equal(refused.status, 503)
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/)
    took = performance.now() - again
  }
  assert.ok(took < 4_000, 'before a deadline')
})
