import assert from 'node:assert/strict'
import { signInAnonymously } from './anonymous.ts'
import { createAuthenticator } from './authenticator.ts'
import { approve, askForCodes, poll } from './devices.ts'
import { type Actor, type Answer, actor, confirm, linkIn, PASSWORD, type TestService } from './harness.ts'
import type { HookReceiver } from './hooks.ts'
import type { OpenidProvider } from './identity-provider/openid-provider.ts'
import { CLIENT, createVisitor, person } from './identity-provider/visits.ts'
import { codeIn } from './mailed-codes.ts'
import { ceremoniesOf } from './passkeys.ts'
import { codeOf, enrolTotp } from './second-factor.ts'

/**
 * Every way in: the calls of one that succeeds. `begin` comes before the hook may be called, and gives the act, which is tried again after
 * a refusal. With `burns` that begins with another challenge of our own, or another visit.
 */
export type WayIn = {
  readonly calls: readonly string[]
  readonly begin: () => Promise<() => Promise<Answer | string>>
  readonly burns?: true
  /** The user is there before the second call. */
  readonly twoActs?: true
  /** The first of two acts ends the session, so that a refusal of the second call has the user begin at the provider. */
  readonly endsSession?: true
}

/** The services that the ways need. `told`: secrets of all that was begun. */
export type WaysOptions = {
  readonly hook: HookReceiver
  readonly idp: OpenidProvider
  readonly told: string[]
}

/** All ways in which somebody becomes a user or gets a session, by a proof of their own. */
export function waysIn(t: TestService, { hook, idp, told }: WaysOptions): Readonly<Record<string, WayIn>> {
  const { db } = t.service.kernel
  const passkeys = ceremoniesOf(t)
  let count = 0
  const address = () => `ada-${++count}@example.com`
  const post = (path: string, body: object, who: Actor = t.anon) => who.post(`/api/auth${path}`, body)
  const signUp = (email = address()) => post('/sign-up/email', { name: 'Ada', email, password: PASSWORD })
  const bearer = (token: string) => actor(t.url, { authorization: `Bearer ${token}` })

  async function mailTo(email: string): Promise<string> {
    const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`))
    assert.ok(mail, `no mail to ${email}`)
    return mail
  }
  const tokenIn = (mail: string): string => {
    const token = new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
    told.push(token)
    return token
  }

  const linkFor = async (email: string) => {
    await post('/sign-in/magic-link', { email })
    return tokenIn(await mailTo(email))
  }
  const codeFor = async (email: string) => {
    await post('/email-otp/send-verification-otp', { email, type: 'sign-in' })
    const code = codeIn(await mailTo(email))
    return { email, otp: code }
  }
  async function idToken(): Promise<string> {
    const { sub, email, name } = person('Grace')
    const token = await idp.idToken(CLIENT.id, { sub, email, email_verified: true, name })
    told.push(token)
    return token
  }
  const known = async () => {
    const email = address()
    const { status, body, text } = await signUp(email)
    assert.equal(status, 200, text)
    return { email, ...body }
  }
  const verified = async () => {
    const user = await known()
    await db
      .updateTable('user')
      .set({ emailVerified: true, emailProvenAt: new Date() })
      .where('id', '=', user.user.id)
      .execute()
    return user as { readonly email: string; readonly token: string }
  }

  return {
    'email sign-up': {
      calls: ['before.sign_up email', 'before.sign_in sign-up'],
      begin: async () => {
        const email = address()
        return () => signUp(email)
      },
    },
    'password by email': {
      calls: ['before.sign_in password'],
      begin: async () => {
        const { email } = await known()
        return () => post('/sign-in/email', { email, password: PASSWORD })
      },
    },
    'password by username': {
      calls: ['before.sign_in password'],
      begin: async () => {
        const username = `ada_${++count}`
        await post('/sign-up/email', { name: 'Ada', email: address(), password: PASSWORD, username })
        return () => post('/sign-in/username', { username, password: PASSWORD })
      },
    },
    'second factor': {
      calls: ['before.sign_in second factor'],
      begin: async () => {
        const ada = await enrolTotp(t, await t.signUp('Ada'))
        hook.taken()
        const { body } = await post('/sign-in/email', { email: ada.email, password: PASSWORD })
        assert.deepEqual([body.twoFactorRedirect, hook.taken()], [true, []], 'not before the second factor')
        const code = codeOf(t, ada.secret)
        told.push(body.token, code)
        return () =>
          t.anon.post(
            '/api/auth/two-factor/verify-totp',
            { code },
            { headers: { authorization: `Bearer ${body.token}` } },
          )
      },
    },
    'magic link of a new user': {
      calls: ['before.sign_up magic_link', 'before.sign_in mail'],
      begin: async () => {
        const token = await linkFor(address())
        return () => t.anon.get(`/api/auth/magic-link/verify?token=${token}`)
      },
    },
    'magic link of a user': {
      calls: ['before.sign_in mail'],
      begin: async () => {
        const token = await linkFor((await verified()).email)
        return () => t.anon.get(`/api/auth/magic-link/verify?token=${token}`)
      },
    },
    'page of a magic link': {
      calls: ['before.sign_up magic_link', 'before.sign_in mail'],
      begin: async () => {
        const email = address()
        await post('/sign-in/magic-link', { email })
        const link = linkIn(await mailTo(email))
        return () => confirm(t.anon, link)
      },
    },
    'mailed code of a new user': {
      calls: ['before.sign_up email_otp', 'before.sign_in mail'],
      begin: async () => {
        const typed = await codeFor(address())
        return () => post('/sign-in/email-otp', typed)
      },
    },
    'mailed code of a user': {
      calls: ['before.sign_in mail'],
      begin: async () => {
        const typed = await codeFor((await verified()).email)
        return () => post('/sign-in/email-otp', typed)
      },
    },
    'provider, new user': {
      calls: ['before.sign_up social:acme', 'before.sign_in social'],
      twoActs: true,
      burns: true,
      begin: async () => {
        idp.visitor = person('Grace')
        const visitor = createVisitor(t)
        return () => visitor.signIn()
      },
    },
    'ID token of a new user': {
      calls: ['before.sign_up social:acme', 'before.sign_in social'],
      twoActs: true,
      begin: async () => {
        const token = await idToken()
        return () => post('/sign-in/social', { provider: 'acme', idToken: { token } })
      },
    },
    'anonymous user with an ID token': {
      calls: ['before.sign_up social:acme', 'before.sign_in social'],
      endsSession: true,
      begin: async () => {
        const [anna, token] = [await signInAnonymously(t), await idToken()]
        return () => post('/link-social', { provider: 'acme', idToken: { token } }, anna)
      },
    },
    passkey: {
      calls: ['before.sign_in verified passkey'],
      burns: true,
      begin: async () => {
        const { authenticator } = await passkeys.newUser()
        return () => passkeys.signIn(authenticator)
      },
    },
    anonymous: {
      calls: ['before.sign_up anonymous', 'before.sign_in anonymous'],
      begin: async () => () => post('/sign-in/anonymous', {}),
    },
    'anonymous user with a first passkey': {
      calls: ['before.sign_up passkey', 'before.sign_in passkey'],
      burns: true,
      begin: async () => {
        const anna = await signInAnonymously(t)
        return () => passkeys.register(anna, createAuthenticator())
      },
    },
    'anonymous user with a first address': {
      calls: ['before.sign_up email', 'before.sign_in mail'],
      begin: async () => {
        const anna = await signInAnonymously(t)
        const email = address()
        hook.taken()
        await post('/sign-up/email', { name: 'Anna', email, password: PASSWORD }, anna)
        assert.deepEqual(hook.taken(), [], 'the link proves the address, not the request')
        const token = tokenIn(await mailTo(email))
        return () => post('/verify-email', { token, password: PASSWORD }, anna)
      },
    },
    'one-time token': {
      calls: ['before.sign_in one-time token'],
      begin: async () => {
        const ada = await known()
        const { body } = await bearer(ada.token).get('/api/auth/one-time-token/generate')
        told.push(body.token)
        return () => post('/one-time-token/verify', { token: body.token })
      },
    },
    device: {
      calls: ['before.sign_in device'],
      begin: async () => {
        const ada = await known()
        const asked = await askForCodes(t)
        told.push(asked.deviceCode)
        await approve(bearer(ada.token), asked)
        return () => {
          t.advance(5_000) // the interval of polls
          return poll(t, asked)
        }
      },
    },
  }
}
