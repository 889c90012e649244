import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BROWSER, FORM, linkIn, testService } from '#test/harness.ts'
import { SESSION_COOKIE } from '#test/second-factor.ts'

const OWN = 'http://localhost:8080'
const t = await testService({
  config: {
    server: { public_url: OWN },
    auth: { trusted_origins: [OWN, 'https://app.example.com'], magic_link: { enabled: true } },
  },
})

/** The token of a link that signs in this address. */
async function linkOf(email: string): Promise<string> {
  await t.anon.post('/api/auth/sign-in/magic-link', { email })
  return new URL(linkIn((await t.mails()).at(-1) ?? ''), OWN).searchParams.get('token') ?? ''
}

test('the own page leads to no endpoint that signs in, also where the own origin is named as a trusted one', async () => {
  const [email, press] = ['eve@example.com', { ...BROWSER, ...FORM, origin: OWN }]
  for (const origin of ['', OWN]) {
    // The page of a link of an attacker, whose button a visitor presses.
    const callbackURL = `${origin}/api/auth/magic-link/verify?token=${await linkOf(email)}`
    const raw = new URLSearchParams({ token: await linkOf(email), callbackURL }).toString()
    const pressed = await t.anon.send('POST', '/api/auth/confirm/magic-link', { raw, headers: press })
    assert.deepEqual([pressed.status, pressed.headers.get('location')], [403, null])
    assert.doesNotMatch(pressed.headers.get('set-cookie') ?? '', new RegExp(SESSION_COOKIE))
  }
  const callbackURL = 'https://app.example.com/api/auth/callback'
  const raw = new URLSearchParams({ token: await linkOf(email), callbackURL }).toString()
  const pressed = await t.anon.send('POST', '/api/auth/confirm/magic-link', { raw, headers: press })
  assert.deepEqual([pressed.status, pressed.headers.get('location')], [303, callbackURL], 'of an application')
})
