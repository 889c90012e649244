import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import {
  emailOTPClient,
  lastLoginMethodClient,
  magicLinkClient,
  usernameClient,
} from 'better-auth/client/plugins'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { BROWSER, linkIn, testService } from '#test/harness.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'
import { done, newUser, refused } from './clients.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })

/** A page of a browser: it sends cookies, and reads those that are not HttpOnly. */
function newPage() {
  const jar = new Map<string, { readonly value: string; readonly isHidden: boolean }>()
  const pairs = (all: boolean) =>
    [...jar]
      .flatMap(([name, { value, isHidden }]) => (all || !isHidden ? [`${name}=${value}`] : []))
      .join('; ')
  const store = (cookie: string) => {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
    if (value === '') jar.delete(name)
    else jar.set(name, { value, isHidden: /; *httponly/i.test(cookie) })
  }
  const document = {
    get cookie() {
      return pairs(false)
    },
    set cookie(cookie: string) {
      store(cookie)
    },
  }
  const customFetchImpl: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    request.headers.set('cookie', pairs(true))
    const response = await fetch(request)
    response.headers.getSetCookie().forEach(store)
    return response
  }
  return { document, customFetchImpl }
}

test('better-auth 1.7.7: a page reads the way in that its browser has used last, and forgets it', async (context) => {
  const { document, customFetchImpl } = newPage()
  Object.assign(globalThis, { document })
  context.after(() => Reflect.deleteProperty(globalThis, 'document'))
  const client = createAuthClient({
    baseURL: t.url,
    fetchOptions: { customFetchImpl },
    plugins: [usernameClient(), lastLoginMethodClient()],
  })
  assert.equal(client.getLastUsedLoginMethod(), null)
  const { email, password, username, name } = newUser()
  done(await client.signUp.email({ name, email, password, username }))
  assert.equal(client.getLastUsedLoginMethod(), 'email')
  assert.doesNotMatch(document.cookie, /session-token/)

  done(await client.signIn.username({ username, password }))
  assert.equal(client.isLastUsedLoginMethod('username'), true)
  assert.equal(refused(await client.signIn.email({ email, password: 'wrong password' })).status, 401)
  assert.equal(client.isLastUsedLoginMethod('username'), true)
  done(await client.signOut())
  assert.equal(client.getLastUsedLoginMethod(), 'username')
  client.clearLastUsedLoginMethod()
  assert.equal(client.getLastUsedLoginMethod(), null)
})

test('better-auth 1.7.7: a page reads that its browser has signed in by a link or a code of a mail', async (context) => {
  const { document, customFetchImpl } = newPage()
  Object.assign(globalThis, { document })
  context.after(() => Reflect.deleteProperty(globalThis, 'document'))
  const client = createAuthClient({
    baseURL: t.url,
    fetchOptions: { customFetchImpl },
    plugins: [magicLinkClient(), emailOTPClient(), lastLoginMethodClient()],
  })
  const { email } = newUser()
  const mailed = async () => (await t.mails()).at(-1) ?? ''
  const askForLink = async () => {
    done(await client.signIn.magicLink({ email }))
    return new URL(linkIn(await mailed()), t.url).searchParams.get('token') ?? ''
  }
  const token = await askForLink()
  assert.equal(client.getLastUsedLoginMethod(), null)
  done(await client.magicLink.verify({ query: { token } }))
  assert.equal(client.getLastUsedLoginMethod(), 'magic-link')

  done(await client.emailOtp.sendVerificationOtp({ email, type: 'sign-in' }))
  const otp = codeIn(await mailed())
  assert.equal(refused(await client.signIn.emailOtp({ email, otp: otherThan(otp) })).status, 400)
  assert.equal(client.getLastUsedLoginMethod(), 'magic-link')
  done(await client.signIn.emailOtp({ email, otp }))
  assert.equal(client.getLastUsedLoginMethod(), 'email-otp')

  client.clearLastUsedLoginMethod()
  const body = new URLSearchParams({ token: await askForLink() })
  const entered = await customFetchImpl(`${t.url}/api/auth/confirm/magic-link`, {
    method: 'POST',
    headers: { ...BROWSER, origin: t.url },
    body,
  })
  assert.equal(entered.status, 200)
  assert.equal(client.getLastUsedLoginMethod(), 'magic-link')
})
