import assert from 'node:assert/strict'
import { test } from 'node:test'
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
const providers = { acme: oidcSettings(idp), trusted: oidcSettings(idp) }
const linking = { trusted_providers: ['trusted'] }
const t = await testService({ config: { outbound: TO_LOOPBACK, auth: { social: { providers, linking } } } })
register(t, idp, ['acme', 'trusted'])
const { db } = t.service.kernel

/** Claims about the address besides the address itself, and whether the account is linked by an ID token and by a visit. */
const CLAIMS: readonly (readonly [provider: string, claims: object, linked: boolean])[] = [
  ['acme', { email_verified: true }, true],
  ['acme', { email_verified: false }, false],
  ['acme', {}, false],
  ['acme', { email_verified: 'true' }, false],
  ['trusted', {}, true],
]

for (const [provider, claims, isLinked] of CLAIMS)
  test(`link-social ${isLinked ? 'links' : 'refuses'} an account of ${provider} with ${JSON.stringify(claims)} about the same address`, async () => {
    const ada = await t.signUp('Ada')
    const accounts = () => db.selectFrom('account').select('accountId').where('userId', '=', ada.id).execute()
    const link = (body: object) =>
      ada.post('/api/auth/link-social', { provider, callbackURL: '/app', ...body })
    const token = await idp.idToken(CLIENT.id, { sub: `${ada.id}-token`, email: ada.email, ...claims })
    const byToken = await link({ idToken: { token } })
    assert.deepEqual(
      [byToken.status, byToken.body.code],
      isLinked ? [200, undefined] : [400, 'UNABLE_TO_LINK_ACCOUNT'],
    )
    idp.visitor = { ...person('Ada'), sub: `${ada.id}-visit`, email: ada.email, ...claims }
    if (!('email_verified' in claims)) delete (idp.visitor as { email_verified?: boolean }).email_verified
    const visitor = createVisitor(t)
    visitor.setCookie(t.config.session.cookie_name, ada.token)
    const target = await visitor.arrive(
      await visitor.visit(await visitor.begin({ provider }, '/link-social')),
    )
    assert.equal(target, isLinked ? '/app' : '/failed?error=unable_to_link_account')
    assert.equal((await accounts()).length, isLinked ? 3 : 1)
    assert.deepEqual(await t.mails(), [])
  })

test('an account that is linked already gets its new tokens, whatever is said about the address', async () => {
  const ada = await t.signUp('Ada')
  idp.visitor = person('Ada', { email: ada.email })
  const visitor = createVisitor(t)
  visitor.setCookie(t.config.session.cookie_name, ada.token)
  const link = async () => visitor.arrive(await visitor.visit(await visitor.begin({}, '/link-social')))
  assert.equal(await link(), '/app')
  idp.visitor = { ...idp.visitor, email_verified: false }
  assert.equal(await link(), '/app')
})
