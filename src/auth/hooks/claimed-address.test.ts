import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { CLIENT, createVisitor, oidcSettings, person, register } from '#test/identity-provider/visits.ts'

const [hook, idp] = [await startHookReceiver(), await startOpenidProvider()]
const t = await testService({
  config: {
    outbound: OUTBOUND,
    rate_limits: { enabled: false },
    auth: {
      hide_registered_emails: true,
      email_password: { require_email_verification: true },
      social: { providers: { acme: oidcSettings(idp) }, sign_up: 'requested' },
      hooks: { mine: hook.settings({ on: ['sign_up'] }) },
    },
  },
})
register(t, idp, ['acme'])

type Claims = { readonly sub: string; readonly email: string }
type Enter = (claims: Claims, asked: { readonly requestSignUp?: boolean }) => Promise<string>

/** Ways to claim an address that the provider has not verified. */
const WAYS: Readonly<Record<string, () => Enter>> = {
  'a visit': () => {
    const visitor = createVisitor(t)
    return (claims, asked) => {
      idp.visitor = { ...claims, email_verified: false, name: 'Eve' }
      return visitor.signIn(asked)
    }
  },
  'an ID token': () => async (claims, asked) => {
    const token = await idp.idToken(CLIENT.id, { ...claims, email_verified: false, name: 'Eve' })
    const { status, body } = await t.anon.post('/api/auth/sign-in/social', {
      ...{ provider: 'acme', idToken: { token } },
      ...asked,
    })
    return `${status} ${body.code} ${body.message}`
  },
}

/** Four visits with one account of the provider: what they get, and all that others notice. */
async function outcomes(enter: Enter, email: string) {
  const { sub } = person('Eve')
  const answers: string[] = []
  const mails: number[] = []
  hook.taken()
  const before = hook.calls.length
  for (const asked of [{}, { requestSignUp: true }, { requestSignUp: true }, {}]) {
    answers.push(await enter({ sub, email }, asked))
    mails.push((await t.mails()).filter((mail) => mail.includes(`To: ${email}`)).length)
  }
  const told = hook.calls
    .slice(before)
    .map(({ type, data }) => ({ type, ...data, email: data.email === email }))
  return { answers, mails, told }
}

let count = 0

for (const [way, begin] of Object.entries(WAYS))
  for (const [name, reply] of Object.entries({
    agrees: {},
    refuses: REFUSE,
    fails: { decision: 'maybe' },
    'adds a field that there is not': { fields: { colour: 'red' } },
  }))
    test(`${way} that only claims an address does not show whether it has an account when a hook ${name}`, async () => {
      hook.reply({})
      const owner = person('Owner')
      idp.visitor = owner
      assert.equal(await createVisitor(t).signIn({ requestSignUp: true }), '/app')
      await t.mails()
      hook.reply(reply)
      const fresh = await outcomes(begin(), `nobody-${++count}@example.com`)
      assert.deepEqual(await outcomes(begin(), owner.email ?? ''), fresh)
      assert.equal(fresh.told.length, 2, 'of each visit that asks for a sign-up')
      assert.ok(fresh.told.every(({ email, method }) => email && method === 'social:acme'))
      assert.deepEqual(fresh.mails, name === 'agrees' ? [0, 1, 1, 0] : [0, 0, 0, 0])
    })
