import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints } from '#test/configuration.ts'

const session = (name: string, more = '') => complaints({ yaml: `session: { cookie_name: ${name}${more} }` })
const lastLogin = (name: string, more = '') =>
  complaints({ yaml: `auth: { last_login_method: { cookie_name: ${name} } }${more}` })

const at = (setting: string, says: string) => [`gatehouse.yaml:1 ${setting}: ${says}`]

test('the session cookie of the application has another name than that of the console, and than every other one', () => {
  assert.deepEqual(session('service-auth.consoles'), [])
  assert.deepEqual(
    session('service-auth.console'),
    at('session.cookie_name', 'is the cookie of requests with x-service-session: 1; choose another name'),
  )
  assert.deepEqual(
    session('__Host-service-auth.console'),
    at('session.cookie_name', 'is the cookie of requests with x-service-session: 1; choose another name'),
  )
  for (const name of ['service-auth.trusted-device', 'service-auth.state', 'service-auth.console.two-factor'])
    assert.deepEqual(
      session(name),
      at('session.cookie_name', 'is the name of another cookie of the service; choose another name'),
    )
})

test('the cookie of the last way in has a name of its own', () => {
  const setting = 'auth.last_login_method.cookie_name'
  assert.deepEqual(lastLogin('last_way'), [])
  assert.deepEqual(
    lastLogin('service-auth.session-token'),
    at(setting, 'is the session cookie (session.cookie_name); choose another name'),
  )
  assert.deepEqual(
    lastLogin('sid', '\nsession: { cookie_name: sid }'),
    at(setting, 'is the session cookie (session.cookie_name); choose another name'),
  )
  assert.deepEqual(
    session('better-auth.last_used_login_method'),
    at(setting, 'is the session cookie (session.cookie_name); choose another name'),
  )
  assert.deepEqual(
    lastLogin('service-auth.session-token_multi-a'),
    at(setting, 'begins as the cookies of auth.multi_session do; choose another name'),
  )
  assert.deepEqual(
    lastLogin('service-auth.console'),
    at(setting, 'is the cookie of requests with x-service-session: 1; choose another name'),
  )
  assert.deepEqual(
    lastLogin('service-auth.known-device'),
    at(setting, 'is the name of another cookie of the service; choose another name'),
  )
})

test('a prefix that browsers take from https only needs secure cookies', () => {
  const says = 'browsers refuse this prefix without session.cookie_secure: true'
  assert.deepEqual(session('__Host-sid'), [])
  assert.deepEqual(session('__Host-sid', ', cookie_secure: false'), at('session.cookie_name', says))
  assert.deepEqual(
    lastLogin('__Secure-last', '\nsession: { cookie_secure: false }'),
    at('auth.last_login_method.cookie_name', says),
  )
})
