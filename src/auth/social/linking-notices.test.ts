import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { proveAddress } from '#test/proven-address.ts'

const { idp, t, localUser } = await startSocialService()

test('linking by the user, linking by itself at a sign-in, and unlinking mail a notice to a proven address', async () => {
  const noticesTo = async (address: string) =>
    (await t.mails())
      .filter((mail) => mail.includes(`To: ${address}`))
      .map((mail) => /^Subject: A way to sign in was (added|removed)/m.exec(mail)?.[1])
      .filter((word) => word !== undefined)
  for (const isProven of [true, false]) {
    const [{ email, ...user }, visitor] = [await t.signUp('Linker'), createVisitor(t)]
    visitor.setCookie('service-auth.session-token', user.token)
    if (isProven) await proveAddress(t, user)
    idp.visitor = person('Linker', { email })
    assert.equal(await visitor.arrive(await visitor.visit(await visitor.begin({}, '/link-social'))), '/app')
    assert.deepEqual(await noticesTo(email), isProven ? ['added'] : [])
    assert.equal(await createVisitor(t).signIn(), '/app')
    assert.deepEqual(await noticesTo(email), [], 'it is linked already')
    const unlinked = await user.post('/api/auth/unlink-account', { providerId: 'acme' })
    assert.equal(unlinked.status, 200, unlinked.text)
    assert.deepEqual(await noticesTo(email), isProven ? ['removed'] : [])
  }
  idp.visitor = person('Automatic', { email_verified: true })
  const { email = '' } = idp.visitor
  await proveAddress(t, await localUser(email, true))
  assert.equal(await createVisitor(t).signIn(), '/app')
  assert.deepEqual(await noticesTo(email), ['added'])
})
