import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { lastLoginMethodClient, usernameClient } from 'better-auth/client/plugins'
import { testService } from '#test/harness.ts'
import { done, newUser, refused } from './clients.ts'

const t = await testService({ config: { auth: { last_login_method: { enabled: true } } } })

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
