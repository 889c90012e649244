import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { testService } from '#test/harness.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { done, refused, VERSIONS, type Version } from './clients.ts'
import { SOCIAL } from './endpoints.ts'
import { newSocialVisitor, type SocialVisitor } from './social-visitor.ts'

const openid = await startOpenidProvider()
const provider = (client_id: string) => ({
  ...{ type: 'oidc' as const, issuer: openid.issuer, client_id, client_secret: `secret of ${client_id}` },
})
const t = await testService({
  config: {
    auth: { social: { providers: { google: provider('first'), gitlab: provider('second') } } },
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  },
})
const url = t.service.kernel.publicUrl()
openid.serve(
  ['google', 'gitlab'].map((name, index) => {
    const id = ['first', 'second'][index] ?? ''
    return { id, secret: `secret of ${id}`, redirectUris: [`${url}/api/auth/callback/${name}`] }
  }),
)

const visitors: SocialVisitor[] = []
function newVisitor(version: Version): SocialVisitor {
  const visitor = newSocialVisitor(url, version)
  visitors.push(visitor)
  return visitor
}

function newPerson() {
  const sub = randomUUID()
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Ada Lovelace' }
}

const idTokenOf = async (person: ReturnType<typeof newPerson>, nonce: string): Promise<string> => {
  const { privateKey, kid } = openid.signingKey()
  return new SignJWT({ ...person, nonce })
    .setProtectedHeader({ alg: 'RS256', kid })
    .setIssuer(openid.issuer)
    .setAudience('first')
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(privateKey)
}

for (const version of VERSIONS) {
  const who = `better-auth ${version}`

  /** A visitor who has just signed in with an account of the provider. */
  async function signedIn() {
    const person = newPerson()
    const visitor = newVisitor(version)
    openid.visitor = person
    const visit = { provider: 'google', callbackURL: '/app', disableRedirect: true } as const
    const { url: page, redirect } = done(await visitor.signIn(visit))
    assert.equal(redirect, false)
    assert.equal(await visitor.browse(page ?? ''), '/app')
    return { ...visitor, person }
  }

  test(`${who}: signs in by redirect, links a second account, lists both and unlinks one`, async () => {
    const { person, ...visitor } = await signedIn()
    assert.partialDeepStrictEqual(done(await visitor.session())?.user, {
      email: person.email,
      emailVerified: true,
    })

    const visit = { provider: 'gitlab', callbackURL: '/settings' } as const
    const { url: page, redirect } = done(await visitor.link(visit))
    assert.equal(redirect, true)
    assert.equal(await visitor.browse(page ?? ''), '/settings')

    const accounts = done(await visitor.accounts())
    assert.deepEqual(
      accounts.map((account) => [account.provider ?? account.providerId, account.accountId]),
      [
        ['google', person.sub],
        ['gitlab', person.sub],
      ],
    )
    const [first, second] = accounts
    assert.ok(first && second)
    assert.equal(done(await visitor.unlink(second)).status, true)
    assert.equal(refused(await visitor.unlink(first)).code, 'FAILED_TO_UNLINK_LAST_ACCOUNT')
  })

  test(`${who}: gets and refreshes the tokens of an account, and its description`, async () => {
    const { person, ...visitor } = await signedIn()
    const [account] = done(await visitor.accounts())
    assert.ok(account)
    const { accessToken } = done(await visitor.accessToken(account))
    assert.ok(accessToken)
    assert.equal(done(await visitor.accessToken(account)).accessToken, accessToken)
    const refreshed = done(await visitor.refresh(account))
    assert.ok(refreshed.accessTokenExpiresAt instanceof Date)
    assert.notEqual(refreshed.accessToken, accessToken)
    assert.equal(done(await visitor.accessToken(account)).accessToken, refreshed.accessToken)
    assert.partialDeepStrictEqual(done(await visitor.info(account)), {
      user: { email: person.email, emailVerified: true },
      data: { sub: person.sub },
    })
  })

  test(`${who}: signs in and links with an ID token`, async () => {
    const person = newPerson()
    const visitor = newVisitor(version)
    const idToken = { token: await idTokenOf(person, 'a nonce'), nonce: 'a nonce' }
    const { redirect, token } = done(await visitor.signIn({ provider: 'google', idToken }))
    assert.deepEqual([redirect, typeof token], [false, 'string'])
    assert.equal(done(await visitor.session())?.user.email, person.email)
    assert.partialDeepStrictEqual(refused(await visitor.link({ provider: 'google', idToken })), {
      status: 409,
      code: 'SOCIAL_ACCOUNT_ALREADY_LINKED',
    })
    const wrong = { ...idToken, nonce: 'another nonce' }
    const stranger = newVisitor(version)
    assert.equal(refused(await stranger.signIn({ provider: 'google', idToken: wrong })).status, 401)
  })

  test(`${who}: is redirected with the error of a person who declines`, async () => {
    openid.visitor = undefined
    const visitor = newVisitor(version)
    const visit = { provider: 'google', callbackURL: '/app', errorCallbackURL: '/sorry' } as const
    const { url: page } = done(await visitor.signIn({ ...visit, disableRedirect: true }))
    assert.equal(await visitor.browse(page ?? ''), '/sorry?error=access_denied')
    assert.equal(refused(await visitor.session()).status, 401)
  })
}

test('every endpoint of social sign-in was used above', () => {
  const calls = visitors.flatMap(({ calls }) => calls)
  const unused = SOCIAL.filter((path) => !calls.some((call) => call.endsWith(` /api/auth${path} 200`)))
  assert.deepEqual(unused, [])
})
