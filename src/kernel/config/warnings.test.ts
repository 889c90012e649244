import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints } from '#test/configuration.ts'
import { defaultConfig } from './config.ts'
import { readSmtpUrl } from './smtp-url.ts'
import { passkeyWarnings, warningsOf } from './warnings.ts'

const server = (url: string) => {
  const { isEncrypted, isVerified, isLoopback } = readSmtpUrl(url) ?? {}
  return [isEncrypted, isVerified, isLoopback]
}

test('smtp:// to another machine requires STARTTLS, unless the URL disables it', () => {
  for (const host of [
    'mail.example.com',
    '192.0.2.1',
    '[2001:db8::1]',
    'localhost.example.com',
    '127.example.com',
    '0.0.0.0',
  ]) {
    assert.deepEqual(server(`smtp://ada:pass@${host}:587`), [true, true, false], host)
    assert.match(readSmtpUrl(`smtp://${host}/?pool=true`)?.url ?? '', /\?pool=true&requireTLS=true$/)
    assert.deepEqual(server(`smtp://${host}?tls=none`), [false, true, false])
    assert.doesNotMatch(readSmtpUrl(`smtp://${host}?tls=none`)?.url ?? '', /tls/i)
    assert.deepEqual(server(`smtps://${host}?tls.rejectUnauthorized=false`), [true, false, false])
  }
  for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '127.1.2.3', '[::1]'])
    assert.deepEqual(server(`smtp://${host}:25`), [false, true, true], host)
})

test("nodemailer's own switches cannot take the requirement away", () => {
  for (const query of [
    'ignoreTLS=true', 'opportunisticTLS=true', 'secure=false', 'service=Outlook365', 'requireTLS=false', 'tls=maybe', 'tls=none&requireTLS=true',
  ]) // biome-ignore format: a list
    assert.match(
      complaints({ env: { SERVICE_MAIL__SMTP_URL: `smtp://mail.example.com/?${query}` } })[0] ?? '',
      /mail\.smtp_url.*\?tls=none for a server without/,
      query,
    )
  assert.equal(readSmtpUrl('smtps://mail.example.com?tls=none'), undefined)
})

test('risky settings have a warning, and others none', () => {
  const says = (...[overrides]: Parameters<typeof defaultConfig>) =>
    warningsOf(defaultConfig(overrides)).join('\n')
  const smtp = (smtp_url: string) => says({ production: true, mail: { transport: 'smtp', smtp_url } })
  assert.equal(says(), '', 'an outbox is what development wants')
  assert.match(says({ production: true }), /^Mail stays in the outbox .*mail\.smtp_url\.$/)
  assert.equal(smtp('smtp://ada:secret@mail.example.com'), '')
  assert.equal(smtp('smtp://localhost?tls=none'), '')
  assert.match(
    smtp('smtp://ada:secret@mail.example.com?tls=none'),
    /^mail\.smtp_url has \?tls=none.*STARTTLS\.$/,
  )
  assert.match(smtp('smtps://mail.example.com?tls.rejectUnauthorized=false'), /certificate/)
  assert.doesNotMatch(smtp('smtp://ada:secret@mail.example.com?tls=none'), /ada|secret/)
  const proxied = { public_url: 'https://auth.example.com' }
  const limited = { rate_limits: { enabled: true } }
  assert.match(
    says({ server: proxied, ...limited }),
    /^server\.trusted_proxies is empty .* share one rate limit/,
  )
  assert.equal(says({ server: { ...proxied, trusted_proxies: ['127.0.0.1'] }, ...limited }), '')
  assert.equal(says({ server: proxied }), '')
  assert.match(says({ gateway: { unsafe_clients: ['reports'] } }), /unsafe_clients.*: reports\.$/)
})

test('reasons why no browser uses a passkey are found, and are warnings once passkeys are configured', () => {
  type Passkey = { rp_id?: string; origins?: string[]; require_user_verification?: boolean }
  const config = (public_url: string | undefined, passkey: Passkey = {}) =>
    defaultConfig({ ...(public_url && { server: { public_url } }), auth: { passkey } })
  const found = (...given: Parameters<typeof config>) => passkeyWarnings(config(...given)).join('\n')
  for (const address of ['http://192.0.2.1:8080', 'https://[2001:db8::1]']) {
    assert.match(found(address), /need a domain, and server\.public_url has an IP address/)
    assert.doesNotMatch(warningsOf(config(address)).join(), /Passkeys/)
    assert.match(warningsOf(config(address, { require_user_verification: true })).join(), /Passkeys/)
  }
  assert.match(found(undefined, { rp_id: '192.0.2.1' }), /auth\.passkey\.rp_id is an IP address/)
  assert.match(found('https://api.example.com', { rp_id: 'example.org' }), /neither example\.org/)
  assert.match(found('https://evil-example.com', { rp_id: 'example.com' }), /neither example\.com/)
  assert.match(found('http://api.example.com'), /only with https/)
  const android = `android:apk-key-hash:${'A'.repeat(43)}`
  assert.equal(found(undefined, { rp_id: 'example.com', origins: ['https://app.example.com', android] }), '')
  assert.deepEqual([found(undefined), found('https://example.com')], ['', ''])
})

test('codes by mail without links are told: strangers can keep an address from its codes for a day', () => {
  const warned = (email_otp: boolean, magic_link: boolean) =>
    warningsOf(
      defaultConfig({ auth: { email_otp: { enabled: email_otp }, magic_link: { enabled: magic_link } } }),
    ).filter((warning) => warning.includes('auth.magic_link'))
  assert.deepEqual([warned(false, false), warned(false, true), warned(true, true)], [[], [], []])
  const [warning = '', ...none] = warned(true, false)
  assert.match(warning, /max_wrong_codes.*Turn on auth\.magic_link/)
  assert.deepEqual(none, [])
})
