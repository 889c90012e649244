import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BROWSER, pressButton, testService } from '#test/harness.ts'
import { exchange } from '#test/hostile/raw-http.ts'

const t = await testService()
const port = Number(new URL(t.url).port)
const page = () => t.anon.get('/dev/mail', { headers: BROWSER })

test('the page of the outbox shows mails newest first, with links that work', async () => {
  const empty = await page()
  assert.equal(empty.status, 200)
  assert.match(empty.text, /No mail yet/)
  const ada = await t.signUp('Ada')
  await ada.post('/api/auth/send-verification-email', { email: ada.email, callbackURL: '/a?b=c&d=<e>' })
  await t.mails()
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.mails()
  const { text } = await page()
  const subjects = [...text.matchAll(/<h2>(.*)<\/h2>/g)].map(([, subject]) => subject)
  assert.deepEqual(subjects, ['Reset your password', 'Verify your email address'])
  assert.match(text, new RegExp(`To ${ada.email}`))
  const links = [...text.matchAll(/<a href="([^"]+)">/g)].map(([, link = '']) =>
    link.replaceAll('&amp;', '&'),
  )
  const link = links.find((each) => each.includes('verify-email'))?.replace(/^https?:\/\/[^/]+/, '') ?? ''
  const opened = await t.anon.get(link, { headers: BROWSER })
  const verified = await pressButton(ada, link, opened)
  assert.equal(verified.status, 303)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.emailVerified, true)
})

test('the same mails are listed and read as JSON, on this machine alone', async () => {
  const { status, body } = await t.anon.get('/dev/mails')
  assert.equal(status, 200)
  assert.deepEqual(
    body.mails.map(({ subject }: { subject: string }) => subject),
    ['Reset your password', 'Verify your email address'],
  )
  assert.ok(body.mails.every((mail: object) => !('text' in mail)))
  const [{ id, ...listed }] = body.mails
  const mail = (await t.anon.get(`/dev/mails/${id}`)).body
  const { text, html, ...rest } = mail
  assert.deepEqual(rest, { id, ...listed })
  assert.match(text, /https?:\/\/\S+/)
  assert.match(html, /^<!doctype html>/)
  for (const other of ['0198-none', encodeURIComponent('../admin-key')])
    assert.deepEqual((await t.anon.get(`/dev/mails/${other}`)).body.code, 'not_found')
  for (const path of ['/dev/mails', `/dev/mails/${id}`]) {
    assert.equal((await t.anon.get(path, { headers: { origin: 'https://evil.example' } })).status, 421)
    assert.equal((await t.anon.get(path, { headers: { 'x-forwarded-for': '203.0.113.9' } })).status, 421)
  }
})

test('a page of another name and a forwarded request do not get the mails', async () => {
  const ask = async (host: string, more = '') =>
    (await exchange(port, [`GET /dev/mail HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`]))
      ?.status
  assert.deepEqual(
    await Promise.all(['localhost', `127.0.0.1:${port}`, `[::1]:${port}`].map((host) => ask(host))),
    [200, 200, 200],
  )
  const foreign = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '10.0.0.1',
    'evil.example:80',
  ]
  assert.deepEqual(await Promise.all(foreign.map((host) => ask(host))), Array(5).fill(421))
  assert.equal(await ask('localhost', 'X-Forwarded-For: 203.0.113.9\r\n'), 421)
  assert.equal(await ask('localhost', 'Forwarded: for=203.0.113.9\r\n'), 421)
})

test('there is no such page in production, nor where mails are sent', async () => {
  for (const config of [
    { production: true },
    { mail: { transport: 'smtp', smtp_url: 'smtp://127.0.0.1:9' } },
  ] as const) {
    const other = await testService({ config })
    for (const path of ['/dev/mail', '/dev/mails', '/dev/mails/x'])
      assert.equal((await other.anon.get(path)).status, 404)
    await other.stop()
  }
})
