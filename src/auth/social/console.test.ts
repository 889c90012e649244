import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONSOLE_COOKIE } from '#kernel/http/header-names.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { authUrlOf, createVisitor, person, type Visitor } from '#test/identity-provider/visits.ts'
import { OPERATE } from '#test/operators.ts'
import { insertFactor } from '#test/second-factor.ts'

const PAGE = 'https://app.example.com/second-factor'
const { t, idp } = await startSocialService({ two_factor: { page_url: PAGE } })
const AUTH = authUrlOf(t)
const SESSION = t.config.session.cookie_name
const OWN = { 'content-type': 'application/json', origin: new URL(AUTH).origin }

/** A page of the console asks for the URL at the provider, and the browser goes there and comes back, by links without the header. */
async function visitFromConsole(visitor: Visitor, path: string): Promise<string> {
  const answer = await visitor.send(`${AUTH}${path}`, {
    method: 'POST',
    headers: { ...OWN, ...OPERATE },
    body: JSON.stringify({ provider: 'acme', callbackURL: '/console', errorCallbackURL: '/failed' }),
  })
  const body = (await answer.json()) as { readonly url: string } // checked by the status
  assert.equal(answer.status, 200, JSON.stringify(body))
  return visitor.arrive(await visitor.visit(body.url))
}
async function whoOperates(visitor: Visitor): Promise<string | undefined> {
  const answer = await visitor.send(`${AUTH}/get-session`, { headers: { ...OWN, ...OPERATE } })
  const body = (await answer.json()) as { readonly user?: { readonly email: string } }
  return body.user?.email
}

test('a visit to a provider that began in the console signs in there, and one of the application signs in here', async () => {
  const visitor = createVisitor(t)
  const [ada, root, eve] = [person('Ada'), person('Root'), person('Eve')]
  idp.visitor = ada
  assert.equal(await visitor.signIn(), '/app')
  const token = visitor.cookie(SESSION)
  idp.visitor = root
  assert.equal(await visitFromConsole(visitor, '/sign-in/social'), '/console')
  assert.equal(visitor.cookie(SESSION), token)
  assert.deepEqual([await visitor.whoAmI(), await whoOperates(visitor)], [ada.email, root.email])

  const operating = visitor.cookie(CONSOLE_COOKIE)
  idp.visitor = eve
  assert.equal(await visitor.signIn(), '/app')
  assert.equal(visitor.cookie(CONSOLE_COOKIE), operating)
  assert.deepEqual([await visitor.whoAmI(), await whoOperates(visitor)], [eve.email, root.email])
})

test('a proof by a provider renews the session of the console, beside another user of the application', async () => {
  const visitor = createVisitor(t)
  const [ada, root] = [person('Ada'), person('Root')]
  idp.visitor = ada
  await visitor.signIn()
  idp.visitor = root
  await visitFromConsole(visitor, '/sign-in/social')
  const [token, operating] = [visitor.cookie(SESSION), visitor.cookie(CONSOLE_COOKIE)]
  assert.equal(await visitFromConsole(visitor, '/reauthenticate'), '/console')
  assert.equal(visitor.cookie(SESSION), token)
  assert.notEqual(visitor.cookie(CONSOLE_COOKIE), operating)
  assert.deepEqual([await visitor.whoAmI(), await whoOperates(visitor)], [ada.email, root.email])
})

test('a second factor is asked for by the console where the visit began there, and by the page of the application else', async () => {
  const visitor = createVisitor(t)
  const root = person('Root')
  idp.visitor = root
  await visitor.signIn()
  const { id } = await t.service.kernel.db
    .selectFrom('user')
    .select('id')
    .where('email', '=', root.email ?? '')
    .executeTakeFirstOrThrow()
  await insertFactor(t, { id })
  const asked = '?twoFactorRedirect=true&methods=totp'
  assert.equal(await visitor.signIn(), `${PAGE}${asked}`)
  const [pending, token] = [visitor.cookie('service-auth.two-factor'), visitor.cookie(SESSION)]
  assert.notEqual(pending, undefined)
  assert.equal(await visitFromConsole(visitor, '/sign-in/social'), `/console${asked}`)
  assert.notEqual(visitor.cookie(`${CONSOLE_COOKIE}.two-factor`), undefined)
  assert.deepEqual([visitor.cookie('service-auth.two-factor'), visitor.cookie(SESSION)], [pending, token])
})
