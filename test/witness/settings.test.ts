import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkIn, PASSWORD, testService } from '#test/harness.ts'
import { done, newVisitor, refused, somebody, VERSIONS } from './clients.ts'

const strict = await testService({
  config: { auth: { email_password: { require_email_verification: true } } },
})
const open = await testService({
  config: { auth: { session_management: { require_authentication: false } } },
})

for (const version of VERSIONS) {
  test(`better-auth ${version}: signs in once the email is verified, where that is required`, async () => {
    const { client, follow } = newVisitor(strict.url, version, 'cookie')
    const { email, password, ...ada } = somebody()
    const up = done(await client.signUp.email({ email, password, ...ada }))
    assert.equal(up.token, null)
    assert.equal(refused(await client.getSession()).status, 401)
    await strict.mails()

    const early = await client.signIn.email({ email, password, callbackURL: '/app' })
    assert.partialDeepStrictEqual(refused(early), { status: 403, code: 'EMAIL_NOT_VERIFIED' })
    const [mail = ''] = await strict.mails()
    const clicked = await follow(linkIn(mail))
    assert.deepEqual([clicked.status, clicked.headers.get('location')], [302, '/app'])
    const { user } = done(await client.signIn.email({ email, password }))
    assert.deepEqual([user.id, user.emailVerified], [up.user.id, true])
  })

  test(`better-auth ${version}: chooses the password anew when the link was followed elsewhere`, async () => {
    const { client } = newVisitor(strict.url, version, 'Bearer')
    const phone = newVisitor(strict.url, version, 'cookie')
    const { email, password, ...ada } = somebody()
    done(await client.signUp.email({ email, password, ...ada }))
    const [mail = ''] = await strict.mails()
    assert.equal((await phone.follow(linkIn(mail))).status, 200)
    const lost = refused(await client.signIn.email({ email, password }))
    assert.deepEqual([lost.status, lost.code], [401, 'INVALID_EMAIL_OR_PASSWORD'])

    done(await client.requestPasswordReset({ email }))
    const [reset = ''] = await strict.mails()
    const token = linkIn(reset).split('/').at(-1) ?? ''
    done(await client.resetPassword({ newPassword: PASSWORD, token }))
    done(await client.signIn.email({ email, password: PASSWORD }))
  })

  test(`better-auth ${version}: sees null, and no error, of no session where none is required`, async () => {
    const { client, useSession } = newVisitor(open.url, version, 'cookie')
    assert.equal(done(await client.getSession()), null)
    assert.partialDeepStrictEqual(await useSession(), { data: null, error: null, isPending: false })
    assert.deepEqual(done(await client.listSessions()), [])
    assert.equal(done(await client.signOut()).success, true)
  })
}
