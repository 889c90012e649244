import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { issueTicket } from '#identity/tickets.ts'
import { PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { authUrlOf, createVisitor, person } from '#test/identity-provider/visits.ts'

const {
  clock,
  idp,
  t,
  kernel,
  db,
  mismatch: MISMATCH,
  accountsOf,
  sessionsOf,
  idToken,
} = await startSocialService()
const AUTH = authUrlOf(t)

test('a person signs in at the provider, and a user with a session is there', async () => {
  const [visitor, ada] = [createVisitor(t), person('Ada', { picture: 'https://img.example.com/a.png' })]
  idp.visitor = ada
  const events: unknown[] = []
  kernel.events.subscribe((name) => events.push(name))
  const url = new URL(await visitor.begin({ newUserCallbackURL: '/welcome', loginHint: ada.email }))
  const { searchParams: asked } = url
  assert.deepEqual(
    ['response_type', 'scope', 'code_challenge_method', 'redirect_uri', 'login_hint'].map((name) =>
      asked.get(name),
    ),
    ['code', 'openid email profile', 'S256', `${AUTH}/callback/acme`, ada.email],
  )
  assert.match(asked.get('nonce') ?? '', /^[\w-]{43}\.[\w-]{43}$/)
  assert.equal(await visitor.arrive(await visitor.visit(url.href)), '/welcome')
  assert.equal(await visitor.whoAmI(), ada.email)
  const [account] = await accountsOf(ada.sub)
  assert.deepEqual([account?.providerId, account?.scopes], ['acme', ['openid', 'email', 'profile']])
  assert.match(account?.sealedAccessToken ?? '', /^v1\./)
  const user = await db
    .selectFrom('user')
    .selectAll()
    .where('email', '=', ada.email ?? '')
    .executeTakeFirst()
  assert.deepEqual([user?.name, user?.emailVerified, user?.image], ['Ada', true, ada.picture])
  assert.deepEqual(events, ['auth_user_created', 'auth_user_signed_in'])
  const acts = await db
    .selectFrom('auditEvent')
    .select('action')
    .where('targetId', '=', user?.id ?? '')
    .execute()
  assert.deepEqual(
    acts.map(({ action }) => action),
    ['user.created', 'account.linked', 'user.signed_in'],
  )
  assert.deepEqual(await t.mails(), [])
})

test('the same account signs in the same user again, whatever address it has by then, with new tokens', async () => {
  const bob = person('Bob')
  idp.visitor = bob
  await createVisitor(t).signIn()
  const [before] = await accountsOf(bob.sub)
  idp.visitor = { ...bob, email: 'bob.moved@example.com' }
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn({ newUserCallbackURL: '/welcome' }), '/app')
  assert.equal(await visitor.whoAmI(), bob.email)
  const [after] = await accountsOf(bob.sub)
  assert.equal(after?.id, before?.id)
  assert.notEqual(after?.sealedAccessToken, before?.sealedAccessToken)
})

test('scopes of the request replace the default ones, but not those that identify the user', async () => {
  const url = new URL(await createVisitor(t).begin({ scopes: ['offline_access'] }))
  assert.equal(url.searchParams.get('scope'), 'openid email offline_access')
})

test('two tabs of one browser sign in at the same time', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Tab')
  const [one, two] = [await visitor.begin(), await visitor.begin()]
  const [first, second] = [await visitor.visit(one), await visitor.visit(two)]
  assert.deepEqual([await visitor.arrive(second), await visitor.arrive(first)], ['/app', '/app'])
})

test('a new account that arrives twice at once adds one user', async () => {
  idp.visitor = person('Twin')
  const visitors = Array.from({ length: 8 }, () => createVisitor(t))
  const callbacks = await Promise.all(visitors.map(async (visitor) => visitor.visit(await visitor.begin())))
  const targets = await Promise.all(visitors.map((visitor, index) => visitor.arrive(callbacks[index] ?? '')))
  assert.deepEqual(new Set(targets), new Set(['/app']))
  assert.equal((await accountsOf(idp.visitor.sub)).length, 1)
})

test('a first sign-in that concurrent requests overtake again and again is refused, and adds no user', async () => {
  const overtaken = person('Overtaken')
  // Each link of this account is lost to another request.
  await sql`create function service.overtake() returns trigger language plpgsql as
    $$begin if new.account_id = ${sql.lit(overtaken.sub)} then return null; end if; return new; end$$`.execute(
    db,
  )
  await sql`create trigger overtake before insert on service.account for each row execute function service.overtake()`.execute(
    db,
  )
  idp.visitor = overtaken
  assert.equal(await createVisitor(t).signIn(), '/failed?error=account_not_linked')
  const { sub, email } = overtaken
  const token = await idToken({ sub, email, email_verified: true })
  const byIdToken = await t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token } })
  assert.deepEqual([byIdToken.status, byIdToken.body.code], [403, 'ACCOUNT_NOT_LINKED'])
  const added = await db
    .selectFrom('user')
    .select('id')
    .where('email', '=', email ?? '')
    .execute()
  assert.deepEqual(added, [])
  await sql`drop function service.overtake() cascade`.execute(db)
})

test('the provider replaces its key, and the next sign-in succeeds', async () => {
  idp.visitor = person('Rotated')
  assert.equal(await createVisitor(t).signIn(), '/app')
  await idp.rotateKey()
  clock.advance(11_000)
  assert.equal(await createVisitor(t).signIn(), '/app')
})

test('a person who declines comes back to errorCallbackURL, or to the error page', async () => {
  idp.visitor = undefined
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn(), '/failed?error=access_denied')
  assert.equal(await visitor.signIn({ errorCallbackURL: undefined }), `${AUTH}/error?error=access_denied`)
  const page = await (await visitor.send(`${AUTH}/error?error=access_denied`)).text()
  assert.match(page, /cancelled at the provider/)
  assert.equal(await visitor.whoAmI(), undefined)
})

test('an unknown provider is 404, a hostile redirect target 403, and no state is stored', async () => {
  const states = () =>
    db.selectFrom('verification').select('valueHash').where('purpose', '=', 'social-sign-in').execute()
  const before = (await states()).length
  for (const provider of ['nobody', '__proto__', 'constructor', 'google', '']) {
    const answer = await t.anon.post('/api/auth/sign-in/social', { provider })
    assert.deepEqual([answer.status, answer.body.code], [404, 'PROVIDER_NOT_FOUND'], provider)
  }
  const hostile = [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/.//evil.example',
    'javascript:alert(1)',
  ]
  for (const field of ['callbackURL', 'errorCallbackURL', 'newUserCallbackURL'])
    for (const target of hostile) {
      const answer = await t.anon.post('/api/auth/sign-in/social', { provider: 'acme', [field]: target })
      assert.deepEqual([answer.status, answer.body.code], [403, 'INVALID_CALLBACK_URL'], `${field} ${target}`)
    }
  assert.equal((await states()).length, before)
})

test('a callback without a state, or with an invented one, is refused', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Stateless')
  const callback = new URL(await visitor.visit(await visitor.begin()))
  callback.searchParams.delete('state')
  assert.equal(await visitor.arrive(callback.href), MISMATCH)
  callback.searchParams.set('state', 'A'.repeat(43))
  assert.equal(await visitor.arrive(callback.href), MISMATCH)
  assert.equal(await visitor.whoAmI(), undefined)
})

test('a state is valid once, and of many callbacks at once one succeeds', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Replay')
  const callback = await visitor.visit(await visitor.begin())
  const targets = await Promise.all(Array.from({ length: 12 }, () => visitor.arrive(callback)))
  assert.deepEqual(targets.toSorted(), ['/app', ...Array(11).fill(MISMATCH)].toSorted())
  assert.equal(await visitor.arrive(callback), MISMATCH)
  assert.equal((await sessionsOf(idp.visitor.email ?? '')).length, 1)
})

test('a state expires after ten minutes', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Slow')
  const callback = await visitor.visit(await visitor.begin())
  clock.advance(600_001)
  assert.equal(await visitor.arrive(callback), MISMATCH)
})

test('a state of another browser is refused, with a cookie of that one and without', async () => {
  for (const cookie of ['none', 'own']) {
    const [mallory, victim] = [createVisitor(t), createVisitor(t)]
    if (cookie === 'own') await victim.begin()
    idp.visitor = person('Mallory')
    const callback = await mallory.visit(await mallory.begin())
    assert.equal(await victim.arrive(callback), MISMATCH, cookie)
    assert.equal(await victim.whoAmI(), undefined, cookie)
    assert.deepEqual(await accountsOf(idp.visitor.sub), [])
    assert.equal((await mallory.send(callback, { method: 'HEAD' })).headers.get('location'), null)
    assert.equal(
      await mallory.arrive(callback),
      cookie === 'own' ? MISMATCH : '/app',
      'consumed by an attempt',
    )
  }
})

test('a token of another purpose is no state, and stays valid', async () => {
  const { id: userId, email: address } = await t.signUp('Purpose')
  const ticket = { userId, sessionId: null, address, lifetime: 60_000, payload: {} }
  const token = await issueTicket(kernel, 'reset-password', ticket)
  const visitor = createVisitor(t)
  await visitor.begin()
  assert.equal(await visitor.arrive(`${AUTH}/callback/acme?code=x&state=${token}`), MISMATCH)
  const reset = await t.anon.post('/api/auth/reset-password', { token, newPassword: `${PASSWORD}!` })
  assert.equal(reset.status, 200)
})

test('a code is accepted once, and only for the visit in which it was issued', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Code')
  const first = new URL(await visitor.visit(await visitor.begin()))
  await visitor.arrive(first.href)
  const second = new URL(await visitor.visit(await visitor.begin()))
  const third = new URL(await visitor.visit(await visitor.begin()))
  const withCode = (url: URL, of: URL) => {
    const changed = new URL(url)
    changed.searchParams.set('code', of.searchParams.get('code') ?? '')
    return visitor.arrive(changed.href)
  }
  assert.equal(await withCode(second, first), '/failed?error=invalid_code', 'replayed')
  const fourth = new URL(await visitor.visit(await visitor.begin()))
  assert.equal(await withCode(fourth, third), '/failed?error=invalid_code', 'PKCE: of another visit')
  const fifth = new URL(await visitor.visit(await visitor.begin()))
  fifth.searchParams.delete('code')
  assert.equal(await visitor.arrive(fifth.href), '/failed?error=no_code')
})

test('the answer of another issuer or provider is refused before its code is sent anywhere', async () => {
  const visitor = createVisitor(t)
  idp.visitor = person('Mixed')
  const [one, two] = [await visitor.visit(await visitor.begin()), await visitor.visit(await visitor.begin())]
  const before = idp.requests.filter((path) => path === '/token').length
  const mixed = new URL(one)
  mixed.searchParams.set('iss', 'https://evil.example')
  assert.equal(await visitor.arrive(mixed.href), '/failed?error=invalid_code')
  assert.equal(await visitor.arrive(two.replace('/callback/acme', '/callback/other')), MISMATCH)
  const silent = new URL(await visitor.visit(await visitor.begin()))
  silent.searchParams.delete('iss')
  assert.equal(
    await visitor.arrive(silent.href),
    '/failed?error=invalid_code',
    'the issuer announces that it sends iss',
  )
  assert.equal(idp.requests.filter((path) => path === '/token').length, before)
})

test('refused sign-ins are counted in the audit trail, with the user if there is one', async () => {
  const minute = 60_000
  clock.advance(minute)
  // Failures are counted by the minute.
  const from = new Date(kernel.now().getTime() - (kernel.now().getTime() % minute))
  const failures = async () => {
    const rows = db
      .selectFrom('auditEvent')
      .where('action', '=', 'sign_in.failed')
      .where('occurredAt', '>=', from)
    const found = await rows.select(['targetId', 'actorId', 'details', 'count']).orderBy('id').execute()
    return found.map(({ targetId, actorId, details, count }) => [targetId, actorId, details, count])
  }
  const refused = person('Refused')
  idp.visitor = refused
  assert.equal(await createVisitor(t).signIn(), '/app')
  const [user] = await db
    .updateTable('user')
    .set({ banned: true })
    .where('email', '=', refused.email ?? '')
    .returning('id')
    .execute()
  for (const _ of [1, 2]) assert.equal(await createVisitor(t).signIn(), '/failed?error=banned')
  idp.visitor = { sub: person('Nameless').sub, name: 'Nameless' }
  assert.equal(await createVisitor(t).signIn(), '/failed?error=email_not_found')
  const post = (token: string) =>
    t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token } })
  assert.equal((await post('forged')).status, 401)
  const expected = [
    [user?.id, 'anonymous', { reason: 'BANNED_USER' }, 2],
    [null, 'anonymous', { reason: 'EMAIL_NOT_FOUND' }, 1],
    [null, 'anonymous', { reason: 'INVALID_TOKEN' }, 1],
  ]
  const rows = await failures()
  assert.deepEqual(
    new Set(rows.map((row) => JSON.stringify(row))),
    new Set(expected.map((row) => JSON.stringify(row))),
  )
})
