import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getEndpoints } from 'better-auth/api'
import { createAuthClient } from 'better-auth/client'
import { adminClient } from 'better-auth/client/plugins'
import { admin as adminPlugin } from 'better-auth/plugins/admin'
import { getEndpoints as getEndpoints12 } from 'better-auth-1.2/api'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { adminClient as adminClient12 } from 'better-auth-1.2/client/plugins'
import { admin as adminPlugin12 } from 'better-auth-1.2/plugins/admin'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { PASSWORD, testService } from '#test/harness.ts'
import { done, newUser, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

const t = await testService()

type Answer<T> = Promise<Outcome<T>>
type User = {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role?: string | undefined
  readonly banned?: boolean | null | undefined
  readonly banReason?: string | null | undefined
}
type Session = {
  readonly id: string
  readonly token: string
  readonly userId: string
  readonly impersonatedBy?: string | null | undefined
}

/** The calls of applications with the admin plugin. The compiler checks that the types of both versions match. */
type Admin = {
  createUser(body: {
    email: string
    password: string
    name: string
    role?: 'user' | 'admin'
  }): Answer<{ user: User }>
  listUsers(asked: {
    query: {
      searchValue?: string
      limit?: number
      sortBy?: string
      filterField?: string
      filterValue?: string
    }
  }): Answer<{ users: User[]; total: number }>
  setRole(body: { userId: string; role: 'user' | 'admin' }): Answer<{ user: User }>
  banUser(body: { userId: string; banReason?: string; banExpiresIn?: number }): Answer<{ user: User }>
  unbanUser(body: { userId: string }): Answer<{ user: User }>
  listUserSessions(body: { userId: string }): Answer<{ sessions: Session[] }>
  revokeUserSession(body: { sessionToken: string }): Answer<{ success: boolean }>
  revokeUserSessions(body: { userId: string }): Answer<{ success: boolean }>
  removeUser(body: { userId: string }): Answer<{ success: boolean }>
  setUserPassword(body: { newPassword: string; userId: string }): Answer<{ status: boolean }>
  impersonateUser(body: { userId: string }): Answer<{ session: Session; user: User }>
  stopImpersonating(): Answer<unknown>
  hasPermission(body: { permissions: { user?: ('ban' | 'delete')[] } }): Answer<{ success: boolean }>
}
type Client = {
  readonly admin: Admin
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ user: { id: string } }> }
  readonly signIn: { email(body: { email: string; password: string }): Answer<unknown> }
  getSession(): Answer<{ user: { id: string }; session: Session } | null>
}
/** Calls that only the client of 1.7 has. */
type Newer = {
  getUser(asked: { query: { id: string } }): Answer<User>
  updateUser(body: { userId: string; data: { name: string } }): Answer<User>
}

function newClient(version: Version): Client & { readonly calls: readonly string[]; readonly newer?: Newer } {
  const { fetch: customFetchImpl, calls } = createCookieFetch()
  const options = { baseURL: t.url, fetchOptions: { customFetchImpl } }
  if (version === '1.7.7') {
    const { admin, signUp, signIn, getSession } = createAuthClient({ ...options, plugins: [adminClient()] })
    return { admin, newer: admin, signUp, signIn, getSession, calls }
  }
  const { admin, signUp, signIn, getSession } = createAuthClient12({ ...options, plugins: [adminClient12()] })
  return { admin, signUp, signIn, getSession, calls }
}

/** Paths of the plugin's own server. */
function pluginPaths(version: Version): string[] {
  const context = new Promise<never>(() => {})
  const { api } =
    version === '1.7.7'
      ? getEndpoints(context, { plugins: [adminPlugin()] })
      : getEndpoints12(context, { plugins: [adminPlugin12()] })
  const endpoints: { readonly path?: string }[] = Object.values(api)
  return endpoints.flatMap(({ path = '' }) => (path.startsWith('/admin/') ? [path] : []))
}

for (const version of VERSIONS) {
  test(`better-auth ${version}: an admin uses every call of the plugin`, async () => {
    const root = newClient(version)
    const { user } = done(await root.signUp.email(newUser()))
    const { admin } = root
    assert.equal(refused(await admin.listUsers({ query: {} })).code, 'YOU_ARE_NOT_ALLOWED_TO_LIST_USERS')
    await setRoleByOperator(t.service.kernel, user.id, 'admin')

    const { email, name } = newUser()
    const created = done(await admin.createUser({ email, password: PASSWORD, name, role: 'user' })).user
    assert.deepEqual([created.email, created.role, created.banned], [email, 'user', false])
    const ada = newClient(version)
    done(await ada.signIn.email({ email, password: PASSWORD }))
    const isIn = async () => (await ada.getSession()).data?.user.id === created.id
    assert.equal(await isIn(), true)
    const userId = created.id

    const listed = done(await admin.listUsers({ query: { searchValue: email, limit: 10, sortBy: 'name' } }))
    assert.deepEqual([listed.total, listed.users.map(({ id }) => id)], [1, [userId]])
    const filtered = done(await admin.listUsers({ query: { filterField: 'id', filterValue: userId } }))
    assert.equal(filtered.users[0]?.email, email)
    if (root.newer !== undefined) {
      assert.equal(done(await root.newer.getUser({ query: { id: userId } })).email, email)
      assert.equal(done(await root.newer.updateUser({ userId, data: { name: 'Other' } })).name, 'Other')
    }

    const { sessions } = done(await admin.listUserSessions({ userId }))
    assert.equal(sessions.length, 1)
    done(await admin.revokeUserSession({ sessionToken: sessions[0]?.token ?? '' }))
    assert.equal(await isIn(), false)
    done(await ada.signIn.email({ email, password: PASSWORD }))
    done(await admin.revokeUserSessions({ userId }))
    assert.equal(await isIn(), false)

    const newPassword = 'set by the admin'
    assert.equal(done(await admin.setUserPassword({ userId, newPassword })).status, true)
    done(await ada.signIn.email({ email, password: newPassword }))
    const banned = done(await admin.banUser({ userId, banReason: 'spam', banExpiresIn: 60 })).user
    assert.deepEqual([banned.banned, banned.banReason], [true, 'spam'])
    assert.equal(refused(await ada.signIn.email({ email, password: newPassword })).code, 'BANNED_USER')
    assert.equal(done(await admin.unbanUser({ userId })).user.banned, false)

    done(await ada.signIn.email({ email, password: newPassword }))
    assert.equal(done(await admin.setRole({ userId, role: 'admin' })).user.role, 'admin')
    assert.equal(done(await ada.admin.hasPermission({ permissions: { user: ['ban'] } })).success, true)
    assert.equal(done(await admin.setRole({ userId, role: 'user' })).user.role, 'user')
    assert.equal(done(await ada.admin.hasPermission({ permissions: { user: ['ban'] } })).success, false)

    const begun = done(await admin.impersonateUser({ userId }))
    assert.deepEqual([begun.user.id, begun.session.userId], [userId, userId])
    assert.equal(done(await root.getSession())?.user.id, userId)
    assert.equal(refused(await admin.removeUser({ userId })).code, 'NOT_WHILE_IMPERSONATING')
    done(await admin.stopImpersonating())
    assert.equal(done(await root.getSession())?.user.id, user.id)

    assert.equal(done(await admin.removeUser({ userId })).success, true)
    assert.equal(done(await admin.listUsers({ query: { searchValue: email } })).total, 0)

    const called = new Set(
      root.calls.concat(ada.calls).map((call) => call.split(' ')[1]?.replace('/api/auth', '')),
    )
    assert.deepEqual(
      pluginPaths(version).filter((path) => !called.has(path)),
      [],
    )
  })
}
