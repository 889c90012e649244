import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { CLIENT, createVisitor, person } from '#test/identity-provider/visits.ts'
import { createPerson } from '#test/organizations.ts'

const { idp, t, kernel, db, ...service } = await startSocialService()
const { mismatch: MISMATCH, accountsOf, sessionsOf, localUser, idToken } = service

const withIdToken = (token: string, more: object = {}) =>
  t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token, ...more } })

test('an ID token of the provider signs in, without a redirect', async () => {
  const { sub, email } = person('Native')
  const token = await idToken({ sub, email, email_verified: true, nonce: 'of the app' })
  const { status, body, headers } = await withIdToken(token, { nonce: 'of the app', accessToken: 'access' })
  assert.deepEqual([status, body.redirect, body.url, body.user.email], [200, false, null, email])
  assert.equal(headers.get('set-auth-token'), body.token)
  const [account] = await accountsOf(sub)
  assert.deepEqual([account?.providerId, account?.sealedRefreshToken], ['acme', null])
})

test('an access token without an end does not keep the end of the one before', async () => {
  const { sub, email } = person('Returning')
  const token = await idToken({ sub, email, email_verified: true })
  const expiresAt = kernel.now().getTime() - 1_000
  await withIdToken(token, { accessToken: 'first', refreshToken: 'refresh', expiresAt })
  assert.equal((await accountsOf(sub))[0]?.accessTokenExpiresAt?.getTime(), expiresAt)
  await withIdToken(token)
  assert.equal((await accountsOf(sub))[0]?.accessTokenExpiresAt?.getTime(), expiresAt)
  await withIdToken(token, { accessToken: 'second' })
  assert.equal((await accountsOf(sub))[0]?.accessTokenExpiresAt, null)
})

test('an ID token is refused if its issuer, audience, key, algorithm, time, nonce or form is wrong', async () => {
  const { sub, email } = person('Forged')
  const right = { sub, email, email_verified: true }
  const seconds = Math.floor(kernel.now().getTime() / 1_000)
  const foreign = await startOpenidProvider()
  const [head, payload] = (await idToken(right)).split('.')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  const secret = new TextEncoder().encode(CLIENT.secret)
  const hmac = new SignJWT({ ...right, iss: idp.issuer, aud: CLIENT.id, iat: seconds, exp: seconds + 300 })
  const wrong: Record<string, string> = {
    'another issuer': await idToken({ ...right, iss: 'https://evil.example' }),
    'another audience': await idToken({ ...right, aud: 'another client' }),
    'no audience': await idToken({ ...right, aud: undefined }),
    'another key': await idToken(right, foreign.signingKey()),
    'another key under the same id': await idToken(right, {
      ...foreign.signingKey(),
      kid: idp.signingKey().kid,
    }),
    'alg none': `${none}.${payload}.`,
    'alg none with a signature': `${none}.${payload}.AAAA`,
    'an HMAC by the client secret': await hmac.setProtectedHeader({ alg: 'HS256' }).sign(secret),
    'no signature': `${head}.${payload}.`,
    expired: await idToken({ ...right, iat: seconds - 900, exp: seconds - 60 }),
    'not valid yet': await idToken({ ...right, nbf: seconds + 120 }),
    'no end': await idToken({ ...right, exp: undefined }),
    'no subject': await idToken({ email, email_verified: true }),
    'a nonce of another request': await idToken({ ...right, nonce: 'another' }),
    'no nonce': await idToken(right),
    'no token': 'nonsense',
  }
  for (const [what, token] of Object.entries(wrong)) {
    const answer = await withIdToken(token, { nonce: 'of the app' })
    assert.deepEqual(
      [answer.status, answer.body.code, answer.headers.get('set-auth-token')],
      [401, 'INVALID_TOKEN', null],
      what,
    )
  }
  assert.deepEqual(await accountsOf(sub), [])
})

test('of the scopes that a provider names, those in the form of a scope are stored', async () => {
  idp.visitor = person('Scoped')
  const { sub, email } = idp.visitor
  const visitor = createVisitor(t)
  const url = await visitor.begin()
  const callback = await visitor.visit(url)
  const nonce = new URL(url).searchParams.get('nonce') ?? ''
  const id_token = await idToken({ sub, email, email_verified: true, nonce })
  const scope = `openid a\0b ${'x'.repeat(257)} email`
  idp.intercept = (request, response) => {
    if (request.url !== '/token') return false
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ access_token: 'x', token_type: 'Bearer', scope, id_token }))
    return true
  }
  const target = await visitor.arrive(callback)
  idp.intercept = () => false
  assert.equal(target, '/app')
  assert.deepEqual((await accountsOf(sub))[0]?.scopes, ['openid', 'email'])
})

test('an access token of other characters than a token has is refused', async () => {
  const { sub, email } = person('Control')
  const token = await idToken({ sub, email, email_verified: true })
  const { status, body } = await withIdToken(token, { accessToken: 'access \u0001' })
  assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'])
  assert.deepEqual(await accountsOf(sub), [])
})

test('in the code flow an ID token with a wrong nonce or a wrong key is refused too', async () => {
  const foreign = await startOpenidProvider()
  idp.visitor = person('Swapped')
  const { sub, email } = idp.visitor
  const right = { sub, email, email_verified: true }
  const swapped = async (make: (nonce: string) => Promise<string>) => {
    const visitor = createVisitor(t)
    const url = await visitor.begin()
    const callback = await visitor.visit(url)
    const id_token = await make(new URL(url).searchParams.get('nonce') ?? '')
    idp.intercept = (request, response) => {
      if (request.url !== '/token') return false
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ access_token: 'x', token_type: 'Bearer', expires_in: 60, id_token }))
      return true
    }
    const target = await visitor.arrive(callback)
    idp.intercept = () => false
    return target
  }
  const key = { ...foreign.signingKey(), kid: idp.signingKey().kid }
  assert.equal(await swapped(() => idToken({ ...right, nonce: 'wrong' })), '/failed?error=invalid_code')
  assert.equal(await swapped(() => idToken(right)), '/failed?error=invalid_code')
  assert.equal(await swapped((nonce) => idToken({ ...right, nonce }, key)), '/failed?error=invalid_token')
  assert.deepEqual(await accountsOf(sub), [])
  assert.equal(await swapped((nonce) => idToken({ ...right, nonce })), '/app')
})

test('an account with the address of a user is linked only if both sides have verified the address', async () => {
  for (const isLocal of [true, false])
    for (const isAtProvider of [true, false]) {
      const visitor = createVisitor(t)
      idp.visitor = person('Collision', { email_verified: isAtProvider })
      const { sub, email = '' } = idp.visitor
      const { id } = await localUser(email, isLocal)
      const isLinked = isLocal && isAtProvider
      const target = isLinked ? '/app' : '/failed?error=account_not_linked'
      assert.equal(await visitor.signIn(), target, `${isLocal} ${isAtProvider}`)
      const linked = await accountsOf(sub)
      assert.deepEqual(
        linked.map(({ userId }) => userId),
        isLinked ? [id] : [],
      )
      assert.equal((await sessionsOf(email)).length, linked.length)
    }
})

test('an account is not linked to a user whose address only an admin has called verified', async () => {
  const root = await createPerson(t, { role: 'admin' })
  const update = (userId: string, data: object) =>
    root.post('/api/auth/admin/update-user', { userId, data }).then(({ status }) => assert.equal(status, 200))
  const visit = async (email: string) => {
    idp.visitor = person('Owner', { email, email_verified: true })
    return createVisitor(t).signIn()
  }
  const [opened, moved] = [await t.signUp('Stranger'), await createPerson(t)]
  await update(opened.id, { emailVerified: true })
  assert.equal(await visit(opened.email), '/failed?error=account_not_linked')
  await update(moved.id, { email: `of-another-${moved.email}`, emailVerified: true })
  assert.equal(await visit(`of-another-${moved.email}`), '/failed?error=account_not_linked')
  const proof = { emailProvenAt: kernel.now() }
  await db.updateTable('user').set(proof).where('id', '=', opened.id).execute()
  assert.equal(await visit(opened.email), '/app')
  const email = `made-${moved.email}`
  const made = { email, password: 'chosen by an admin', name: 'Made', data: { emailVerified: true } }
  assert.equal((await root.post('/api/auth/admin/create-user', made)).status, 200)
  assert.equal(await visit(email), '/app', 'nobody else has opened this one')
})

/** A user with a session, in a browser. */
const signedIn = async (name: string) => {
  const [user, visitor] = [await t.signUp(name), createVisitor(t)]
  visitor.setCookie('service-auth.session-token', user.token)
  return { ...user, visitor }
}

test('a user links an account, with further scopes, and signs in with it afterwards', async () => {
  const { visitor, email, id } = await signedIn('Linker')
  idp.visitor = person('Linker', { email })
  const url = await visitor.begin({ scopes: ['offline_access'] }, '/link-social')
  assert.equal(new URL(url).searchParams.get('scope'), 'openid email profile offline_access')
  const callback = await visitor.visit(url)
  assert.equal(await visitor.arrive(callback), '/app')
  assert.deepEqual(
    (await accountsOf(idp.visitor.sub)).map(({ userId }) => userId),
    [id],
  )
  assert.equal(await visitor.arrive(callback), MISMATCH, 'the state is used up')
  assert.equal(
    await visitor.arrive(await visitor.visit(await visitor.begin({}, '/link-social'))),
    '/app',
    'again',
  )
  const other = createVisitor(t)
  assert.equal(await other.signIn(), '/app')
  assert.equal(await other.whoAmI(), email)
})

test('linking is refused to another address, to an account of another user, and by an ID token that is linked already', async () => {
  const [ada, bob] = [await signedIn('Owner'), await signedIn('Thief')]
  idp.visitor = person('Elsewhere')
  const link = async ({ visitor }: typeof ada) =>
    visitor.arrive(await visitor.visit(await visitor.begin({}, '/link-social')))
  assert.equal(await link(ada), '/failed?error=unable_to_link_account')
  idp.visitor = person('Owned', { email: ada.email })
  assert.equal(await link(ada), '/app')
  assert.equal(await link(bob), '/failed?error=account_already_linked_to_different_user')
  const { sub } = idp.visitor
  const token = await idToken({ sub, email: ada.email, email_verified: true })
  const given = { provider: 'acme', idToken: { token } }
  const codes = [
    await ada.post('/api/auth/link-social', given),
    await bob.post('/api/auth/link-social', given),
  ]
  assert.deepEqual(
    codes.map(({ status, body }) => [status, body.code]),
    [
      [409, 'SOCIAL_ACCOUNT_ALREADY_LINKED'],
      [409, 'ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER'],
    ],
  )
  const own = await idToken({ sub: person('Second').sub, email: ada.email, email_verified: true })
  const linked = await ada.post('/api/auth/link-social', { provider: 'acme', idToken: { token: own } })
  assert.deepEqual([linked.status, linked.body], [200, { url: '', redirect: false, status: true }])
})

test('a link flow is finished only in the session that began it', async () => {
  const [ada, bob] = [await signedIn('Began'), await signedIn('Finishes')]
  idp.visitor = person('Began', { email: ada.email })
  const begin = async () => ada.visitor.visit(await ada.visitor.begin({}, '/link-social'))
  const callback = await begin()
  ada.visitor.setCookie('service-auth.session-token', bob.token)
  assert.equal(
    await ada.visitor.arrive(callback),
    '/failed?error=state_mismatch',
    'the session of another user',
  )
  ada.visitor.setCookie('service-auth.session-token', 'A'.repeat(43))
  const foreign = await begin().catch((error: Error) => error.message)
  assert.match(foreign, /UNAUTHORIZED/)
  ada.visitor.setCookie('service-auth.session-token', ada.token)
  const late = await begin()
  ada.visitor.setCookie('service-auth.session-token', undefined)
  await ada.post('/api/auth/sign-out', {})
  assert.equal(await ada.visitor.arrive(late), MISMATCH, 'the session has ended, and its state with it')
  assert.deepEqual(await accountsOf(idp.visitor.sub), [])
})

test('an account without an address signs in nobody new', async () => {
  const { sub } = person('Nameless')
  idp.visitor = { sub, name: 'Nameless' }
  assert.equal(await createVisitor(t).signIn(), '/failed?error=email_not_found')
})

test('accounts with one new address that arrive at once, each twice, all sign in as one user', async () => {
  for (let round = 0; round < 4; round++) {
    const { sub, email } = person('Many')
    const arriving = Array.from({ length: 8 }, (_, index) =>
      idToken({ sub: `${sub}-${index % 4}`, email, email_verified: true }),
    )
    const answers = await Promise.all((await Promise.all(arriving)).map((token) => withIdToken(token)))
    for (const { status, text } of answers) assert.equal(status, 200, text)
    assert.equal(new Set(answers.map(({ body }) => body.user.id)).size, 1)
  }
})

test('a ban is shown only to one who has proven the address', async () => {
  const { email } = await localUser('barred@example.com', true)
  await db.updateTable('user').set({ banned: true }).where('email', '=', email).execute()
  const codes = []
  for (const email_verified of [false, true]) {
    const { sub } = person('Claims')
    codes.push((await withIdToken(await idToken({ sub, email, email_verified }))).body.code)
  }
  assert.deepEqual(codes, ['ACCOUNT_NOT_LINKED', 'BANNED_USER'])
})

test('a banned user does not come in, and a user with a second factor is asked for it', async () => {
  idp.visitor = person('Barred')
  const { email = '' } = idp.visitor
  await createVisitor(t).signIn()
  await db.updateTable('user').set({ twoFactorEnabled: true }).where('email', '=', email).execute()
  const visitor = createVisitor(t)
  const target = await visitor.signIn({ callbackURL: '/app?tab=1' })
  assert.match(target, /^\/app\?tab=1&twoFactorRedirect=true&methods=/)
  assert.equal(await visitor.whoAmI(), undefined)
  assert.match(visitor.cookie('service-auth.two-factor') ?? '', /^2fa_/)
  await db.updateTable('user').set({ banned: true }).where('email', '=', email).execute()
  assert.equal(await createVisitor(t).signIn(), '/failed?error=banned')
})
