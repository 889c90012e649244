import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passkeyClient } from '@better-auth/passkey/client'
import { createAuthClient } from 'better-auth/client'
import { anonymousClient } from 'better-auth/client/plugins'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import {
  anonymousClient as anonymousClient12,
  passkeyClient as passkeyClient12,
} from 'better-auth-1.2/client/plugins'
import { createAuthenticator } from '#test/authenticator.ts'
import { FORM, formIn, linkIn, testService } from '#test/harness.ts'
import { installCredentials } from './browser-credentials.ts'
import {
  bearer,
  CARRIERS,
  type Carrier,
  done,
  newUser,
  type Outcome,
  refused,
  VERSIONS,
  type Version,
} from './clients.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({ config: { auth: { anonymous: { enabled: true } } } })
let authenticator = createAuthenticator()
installCredentials(t.service.kernel.publicUrl(), () => authenticator)

type Answer<T> = Promise<Outcome<T>>
type User = { readonly id: string; readonly email: string; readonly isAnonymous?: boolean | null | undefined }
// biome-ignore lint/suspicious/noConfusingVoidType: as in the clients' types
type Failable = { readonly error?: unknown; readonly data?: unknown } | null | undefined | void
/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ token: string | null; user: User }> }
  readonly signIn: {
    anonymous(): Answer<{ token: string; user: User } | null>
    email(body: { email: string; password: string }): Answer<{ user: User }>
    passkey(): Promise<Failable>
  }
  signOut(): Answer<unknown>
  getSession(): Answer<{ user: User } | null>
  deleteUser(): Answer<unknown>
  readonly passkey: { addPasskey(asked: { name: string }): Promise<Failable> }
}
type Visitor = Calls & {
  readonly fetch: typeof fetch
  /** The types of 1.2 do not have it. */
  deleteAnonymousUser(): Answer<{ success: boolean }>
}

/** A client with its plugin, configured as in an application. */
function newVisitor(version: Version, by: Carrier): Visitor {
  const { fetch } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  const options = {
    baseURL: t.url,
    fetchOptions: { customFetchImpl: fetch, ...(by === 'Bearer' && bearer()) },
  }
  if (version === '1.7.7') {
    const client = createAuthClient({ ...options, plugins: [anonymousClient(), passkeyClient()] })
    const { signUp, signIn, signOut, getSession, deleteUser, passkey, deleteAnonymousUser } = client
    return { signUp, signIn, signOut, getSession, deleteUser, passkey, deleteAnonymousUser, fetch }
  }
  const client = createAuthClient12({ ...options, plugins: [anonymousClient12(), passkeyClient12()] })
  const { signUp, signIn, signOut, getSession, deleteUser, passkey } = client
  const deleteAnonymousUser = (): Answer<{ success: boolean }> =>
    client.$fetch('/delete-anonymous-user', { method: 'POST' })
  return { signUp, signIn, signOut, getSession, deleteUser, passkey, deleteAnonymousUser, fetch }
}

const me = async ({ getSession }: Calls): Promise<User | undefined> => (await getSession()).data?.user

/** Opens the link of the mail to the address in the client's browser, fills in the form and presses the button. */
async function followMail({ fetch }: Visitor, email: string, filled = {}): Promise<void> {
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  const page = new URL(linkIn(mail), t.url)
  const body = formIn(await (await fetch(page)).text(), filled)
  const pressed = await fetch(`${page.origin}${page.pathname}`, { method: 'POST', headers: FORM, body })
  assert.equal(pressed.status, 200)
}

for (const version of VERSIONS)
  for (const by of CARRIERS) {
    test(`better-auth ${version} by ${by}: signs in anonymously once, and deletes the user`, async () => {
      const visitor = newVisitor(version, by)
      const user = done(await visitor.signIn.anonymous())?.user
      assert.equal((await me(visitor))?.id, user?.id)
      assert.equal((await me(visitor))?.isAnonymous, true)
      const again = refused(await visitor.signIn.anonymous())
      assert.equal(again.code, 'ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY')
      assert.equal(done(await visitor.deleteAnonymousUser()).success, true)
      assert.equal(await me(visitor), undefined)
    })

    test(`better-auth ${version} by ${by}: a sign-up keeps the id of the anonymous user`, async () => {
      const visitor = newVisitor(version, by)
      const id = done(await visitor.signIn.anonymous())?.user.id
      const ada = newUser()
      const asked = done(await visitor.signUp.email(ada))
      assert.deepEqual([asked.token, asked.user.id], [null, id])
      assert.equal((await me(visitor))?.isAnonymous, true)
      // Without cookies the link is opened in another browser than that of the sign-up.
      await followMail(visitor, ada.email, by === 'cookie' ? {} : { password: ada.password })
      if (by === 'Bearer') done(await visitor.signIn.email(ada))
      const user = await me(visitor)
      assert.deepEqual([user?.id, user?.email, user?.isAnonymous], [id, ada.email, false])
      done(await visitor.signOut())
      assert.equal(done(await visitor.signIn.email(ada)).user.id, id)
    })
  }

// The ceremonies of the clients need cookies.
for (const version of VERSIONS)
  test(`better-auth ${version}: a passkey keeps the id and goes on with a new session`, async () => {
    authenticator = createAuthenticator()
    const visitor = newVisitor(version, 'cookie')
    const id = done(await visitor.signIn.anonymous())?.user.id
    assert.equal((await visitor.passkey.addPasskey({ name: 'Laptop' }))?.error ?? null, null)
    assert.deepEqual([(await me(visitor))?.id, (await me(visitor))?.isAnonymous], [id, false])
    assert.equal(refused(await visitor.deleteAnonymousUser()).code, 'USER_IS_NOT_ANONYMOUS')
    done(await visitor.signOut())
    assert.equal((await visitor.signIn.passkey())?.error ?? null, null)
    assert.equal((await me(visitor))?.id, id)
    done(await visitor.deleteUser())
    assert.equal(await me(visitor), undefined)
  })
