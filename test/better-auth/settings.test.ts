import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confirm, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { done, newUser, newVisitor, refused, VERSIONS } from './clients.ts'

const strict = await testService({
  config: { auth: { email_password: { require_email_verification: true } } },
})
/** A service whose mailed links act as soon as they are opened, as on better-auth's own server. */
const direct = await testService({
  config: { auth: { email_password: { require_email_verification: true }, email: { direct_links: true } } },
})
const open = await testService({
  config: { auth: { session_management: { require_authentication: false } } },
})

for (const version of VERSIONS) {
  test(`better-auth ${version}: signs in only after email verification, if required`, async () => {
    const { client, confirm } = newVisitor(strict.url, version, 'cookie')
    const { email, password, ...ada } = newUser()
    const up = done(await client.signUp.email({ email, password, ...ada }))
    assert.equal(up.token, null)
    assert.equal(refused(await client.getSession()).status, 401)
    await strict.mails()

    const early = await client.signIn.email({ email, password, callbackURL: '/app' })
    assert.partialDeepStrictEqual(refused(early), { status: 403, code: 'EMAIL_NOT_VERIFIED' })
    const [mail = ''] = await strict.mails()
    const clicked = await confirm(linkIn(mail))
    assert.deepEqual([clicked.status, clicked.headers.get('location')], [303, '/app'])
    const { user } = done(await client.signIn.email({ email, password }))
    assert.deepEqual([user.id, user.emailVerified], [up.user.id, true])
  })

  test(`better-auth ${version}: keeps the password if it is entered on the page of the link`, async () => {
    const { client } = newVisitor(strict.url, version, 'Bearer')
    const { email, password, ...ada } = newUser()
    done(await client.signUp.email({ email, password, ...ada }))
    const [mail = ''] = await strict.mails()
    assert.equal((await confirm(strict.anon, linkIn(mail), { password })).status, 200)
    done(await client.signIn.email({ email, password }))
  })

  test(`better-auth ${version}: with direct links, requires a new password if the link was opened in another browser`, async () => {
    const { client } = newVisitor(direct.url, version, 'Bearer')
    const phone = newVisitor(direct.url, version, 'cookie')
    const { email, password, ...ada } = newUser()
    done(await client.signUp.email({ email, password, ...ada }))
    const [mail = ''] = await direct.mails()
    assert.equal((await phone.follow(linkIn(mail))).status, 200)
    const lost = refused(await client.signIn.email({ email, password }))
    assert.deepEqual([lost.status, lost.code], [403, 'PASSWORD_CHANGE_REQUIRED'])

    const [reset = ''] = await direct.mails()
    const token = linkIn(reset).split('/').at(-1) ?? ''
    done(await client.resetPassword({ newPassword: PASSWORD, token }))
    done(await client.signIn.email({ email, password: PASSWORD }))
    await direct.mails()
  })

  test(`better-auth ${version}: getSession returns null without an error if authentication is optional`, async () => {
    const { client, useSession } = newVisitor(open.url, version, 'cookie')
    assert.equal(done(await client.getSession()), null)
    assert.partialDeepStrictEqual(await useSession(), { data: null, error: null, isPending: false })
    assert.deepEqual(done(await client.listSessions()), [])
    assert.equal(done(await client.signOut()).success, true)
  })
}
