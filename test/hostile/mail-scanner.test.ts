import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { MAIL_FLOWS } from '#auth/mailing/every-flow.ts'
import { MAILS } from '#auth/mailing/texts.ts'
import type { Mail } from '#kernel/mail/mailer.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Actor, BROWSER, confirm, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'
import { proveAddress } from '#test/proven-address.ts'
import { cookiesOf, PENDING_COOKIE, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({
  config: { auth: { ...EVERY_FEATURE, email: { sign_in_after_verification: true } } },
})
const { db } = t.service.kernel
const AUTH = '/api/auth'
const DAY = 86_400_000
const NEW_PASSWORD = 'another horse staple'

/** A mail that is under way. */
type Begun = {
  readonly to: string
  /** Presses the button, with the session that the person has. */
  readonly person: Actor
  readonly filled?: Readonly<Record<string, string>>
  readonly isDone: () => Promise<boolean>
}
type Flow = {
  readonly mail: keyof typeof MAILS
  /** The purpose of its ticket. */
  readonly purpose?: keyof typeof MAIL_FLOWS
  readonly begin: () => Promise<Begun>
}

const post = (path: string, body: object, by: Actor = t.anon) => by.post(`${AUTH}${path}`, body)
const proven = async (name: string): Promise<User> => proveAddress(t, await t.signUp(name))
const userWith = (email: string) =>
  db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()
const signsIn = async (email: string, password: string): Promise<boolean> =>
  (await post('/sign-in/email', { email, password })).status === 200
const newPassword = ({ email }: User): Begun => ({
  ...{ to: email, person: t.anon, filled: { newPassword: NEW_PASSWORD } },
  isDone: () => signsIn(email, NEW_PASSWORD),
})

/** Every mail that has a link. */
const FLOWS: Readonly<Record<string, Flow>> = {
  verification: {
    mail: 'verifyEmail',
    purpose: 'verify-email',
    async begin() {
      const { email } = await t.signUp('Ada')
      await post('/send-verification-email', { email })
      const isDone = async () => (await userWith(email))?.emailVerified === true
      return { to: email, person: t.anon, filled: { password: PASSWORD }, isDone }
    },
  },
  'magic link of a user': {
    mail: 'signIn',
    purpose: 'sign-in',
    async begin() {
      const { id, email } = await proven('Ada')
      await post('/sign-in/magic-link', { email })
      const sessions = db.selectFrom('session').select('id').where('userId', '=', id)
      return { to: email, person: t.anon, isDone: async () => (await sessions.execute()).length === 2 }
    },
  },
  'magic link of an address without an account': {
    mail: 'signIn',
    purpose: 'sign-in',
    async begin() {
      const email = 'newcomer@example.com'
      await post('/sign-in/magic-link', { email })
      return { to: email, person: t.anon, isDone: async () => (await userWith(email)) !== undefined }
    },
  },
  'password reset': {
    mail: 'resetPassword',
    purpose: 'reset-password',
    async begin() {
      const ada = await proven('Ada')
      await post('/request-password-reset', { email: ada.email })
      return newPassword(ada)
    },
  },
  'password that cannot be checked': {
    mail: 'renewPassword',
    purpose: 'reset-password',
    async begin() {
      const ada = await proven('Ada')
      const password =
        '$argon2id$v=19$m=1048576,t=4,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
      await db.updateTable('account').set({ password }).where('userId', '=', ada.id).execute()
      assert.equal(await signsIn(ada.email, PASSWORD), false)
      return newPassword(ada)
    },
  },
  'password that has to be changed': {
    mail: 'changePassword',
    purpose: 'reset-password',
    async begin() {
      const ada = await proven('Ada')
      const mustChange = { mustChangePassword: true }
      await db.updateTable('account').set(mustChange).where('userId', '=', ada.id).execute()
      assert.equal(await signsIn(ada.email, PASSWORD), false)
      return newPassword(ada)
    },
  },
  'change of address, the old one': {
    mail: 'confirmChangeEmail',
    purpose: 'confirm-change-email',
    async begin() {
      const ada = await proven('Ada')
      const newEmail = `new-${ada.email}`
      await post('/change-email', { newEmail }, ada)
      const isDone = async () => (await t.mails()).some((mail) => mail.includes(`To: ${newEmail}`))
      return { to: ada.email, person: t.anon, isDone }
    },
  },
  'change of address, the new one': {
    mail: 'changeEmail',
    purpose: 'change-email',
    async begin() {
      const ada = await t.signUp('Ada')
      const newEmail = `new-${ada.email}`
      await post('/change-email', { newEmail }, ada)
      return { to: newEmail, person: ada, isDone: async () => (await userWith(newEmail))?.id === ada.id }
    },
  },
  'account deletion': {
    mail: 'deleteUser',
    purpose: 'delete-user',
    async begin() {
      const ada = await t.signUp('Ada')
      t.advance(DAY + 1)
      await post('/delete-user', {}, ada)
      return { to: ada.email, person: ada, isDone: async () => (await userWith(ada.email)) === undefined }
    },
  },
  invitation: {
    mail: 'invitation',
    async begin() {
      const [ada, bea] = [await createPerson(t), await createPerson(t)]
      await createOrganization(t, [[ada, 'owner']])
      await post('/organization/invite-member', { email: bea.email, role: 'member' }, ada)
      const member = db.selectFrom('member').select('id').where('userId', '=', bea.id)
      return { to: bea.email, person: bea, isDone: async () => (await member.execute()).length === 1 }
    },
  },
}

/** Tables that a request changes by being one, or that change by themselves. */
const NOT_COMPARED = {
  rate_limit: 'counts requests',
  process_lease: 'shows that the process is alive',
}

/** A digest of each table of the control database but for the queue, whose jobs `t.mails` has run before. */
async function digests(): Promise<Readonly<Record<string, string>>> {
  const tables = sql<{ name: string }>`select tablename as name from pg_tables where schemaname = 'service'`
  const names = (await tables.execute(db)).rows.map(({ name }) => name)
  for (const name of Object.keys(NOT_COMPARED)) assert.ok(names.includes(name), name)
  const compared = names.filter((name) => !(name in NOT_COMPARED)).toSorted()
  const digestOf = async (name: string) => {
    const table = sql.table(`service.${name}`)
    const query = sql<{ digest: string }>`
      select count(*) || ' ' || md5(coalesce(string_agg(one::text, e'\n' order by one::text), '')) as digest
      from ${table} one`
    return (await query.execute(db)).rows[0]?.digest ?? ''
  }
  return Object.fromEntries(await Promise.all(compared.map(async (name) => [name, await digestOf(name)])))
}

/** A scanner of mails, which keeps cookies. */
function createScanner() {
  const cookies: Record<string, string> = {}
  const cookie = () => ({
    cookie: Object.entries(cookies)
      .map(([name, value]) => `${name}=${value}`)
      .join('; '),
  })
  /** Follows redirects, and opens what a page refers to. Returns the path where the redirects end. */
  async function open(method: string, link: string, headers: Record<string, string>): Promise<string> {
    let path = link
    for (let hop = 0; hop < 10; hop++) {
      const answer = await t.anon.send(method, path, { headers: { ...headers, ...cookie() } })
      assert.ok(answer.status < 500, answer.text)
      assert.equal(answer.headers.get('set-auth-token'), null)
      Object.assign(cookies, cookiesOf(answer))
      const location = answer.headers.get('location')
      if (location === null) {
        for (const [, target = ''] of answer.text.matchAll(/(?:href|src)="(\/[^"]*)"/g))
          await t.anon.get(target.replaceAll('&amp;', '&'), { headers: { ...headers, ...cookie() } })
        return path
      }
      path = location.replace(/^http:\/\/localhost:\d+/, '')
    }
    return assert.fail(`too many redirects: ${link}`)
  }
  return { cookies, cookie, open }
}

const PREFETCH = { 'sec-purpose': 'prefetch;prerender', purpose: 'prefetch', 'x-moz': 'prefetch' }
const SCANNERS = [
  { accept: '*/*' },
  BROWSER,
  { ...BROWSER, ...PREFETCH },
  { ...BROWSER, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
]

for (const [name, { mail, begin }] of Object.entries(FLOWS)) {
  test(`${name}: a scanner that opens the link changes nothing and is not signed in; the button acts`, async () => {
    await t.mails()
    const { to, person, filled, isDone } = await begin()
    const sent = (await t.mails()).filter((one) => one.includes(`To: ${to}\r\n`))
    const subject = `Subject: ${mailOf(mail).subject}\r\n`
    const found = sent.find((one) => one.includes(subject))
    assert.ok(found, `no mail of ${mail} in:\n${sent.join('\n')}`)
    const link = linkIn(found)
    const before = await digests()

    const scanner = createScanner()
    for (const headers of SCANNERS)
      for (const method of ['GET', 'HEAD', 'GET']) await scanner.open(method, link, headers)
    const page = await scanner.open('GET', link, BROWSER)
    assert.match(page, /^\/api\/auth\/confirm\//)
    await Promise.all([scanner.open('GET', page, BROWSER), scanner.open('GET', page, BROWSER)])

    assert.deepEqual(await t.mails(), [])
    assert.deepEqual(await digests(), before)
    for (const cookie of [SESSION_COOKIE, PENDING_COOKIE]) assert.equal(scanner.cookies[cookie], undefined)
    assert.equal((await t.anon.get(`${AUTH}/get-session`, { headers: scanner.cookie() })).status, 401)

    const pressed = await confirm(person, page, filled)
    assert.ok([200, 303].includes(pressed.status), pressed.text)
    assert.ok(await isDone())
    assert.notDeepEqual(await digests(), before, 'the digests show an act')
  })
}

/** Has every field that a mail's text reads. */
const SAMPLE = {
  ...{ name: 'Ada', email: 'ada@example.com', emailProvenAt: new Date(0), address: 'ada@example.com' },
  ...{ url: 'https://link.example/', lifetime: 60_000, code: { code: '123456', lifetime: 60_000 } },
  ...{ payload: { newEmail: 'new@example.com' }, organization: { name: 'Acme' }, role: 'member' },
}

/** The mail with sample values; `enabled` is one for the texts that take another argument. */
function mailOf(name: keyof typeof MAILS): Mail {
  // Each text reads some of these fields.
  const text = MAILS[name] as unknown as (about: object, more: string) => Mail
  return text({ ...SAMPLE, recipient: SAMPLE, inviter: SAMPLE }, 'enabled')
}

test('every mail with a link has a row, and so has every purpose of a mailed ticket', () => {
  const names = Object.keys(MAILS) as (keyof typeof MAILS)[]
  const linked = names.filter((name) => JSON.stringify(mailOf(name)).includes(SAMPLE.url))
  const rows = Object.values(FLOWS)
  assert.deepEqual([...new Set(rows.map(({ mail }) => mail))].toSorted(), linked.toSorted())
  const purposes = rows.flatMap(({ purpose }) => purpose ?? [])
  assert.deepEqual([...new Set(purposes)].toSorted(), Object.keys(MAIL_FLOWS).toSorted())
})
