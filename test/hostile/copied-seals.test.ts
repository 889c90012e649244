import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { sql } from 'kysely'
import { issueTicket } from '#gateway/realtime/tickets.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { SEALED } from '#kernel/secrets.ts'
import { testDatabase } from '#test/database.ts'
import { actor, PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { codeOf, enrolTotp, insertFactor, pendingSignIn } from '#test/second-factor.ts'
import { addWebhook, FOR_CLIENT, webhookRequests } from '#test/webhooks.ts'

const { t, idp, kernel, db, mismatch, accountsOf } = await startSocialService()
const AUTH = '/api/auth'

/** Who can write into the control database, and has no secret, copies sealed values from row to row. */
const copy = async (statement: ReturnType<typeof sql>) => {
  const { numAffectedRows } = await statement.execute(db)
  assert.equal(numAffectedRows, 1n)
  await kernel.coherence.settle()
}

const theft = {
  async 'two-factor-secret'() {
    const [ada, eve] = [await enrolTotp(t, await t.signUp('Ada')), await t.signUp('Eve')]
    const known = await insertFactor(t, eve)
    await copy(sql`update service.two_factor set secret = (select secret from service.two_factor where user_id = ${eve.id})
      where user_id = ${ada.id}`)
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    const signedIn = await t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code: codeOf(t, known) })
    assert.deepEqual([signedIn.status, signedIn.body.code], [401, 'INVALID_CODE'])
    assert.equal(signedIn.headers.get('set-auth-token'), null)
    // The other way round: a user's own page shows nothing of another's secret.
    const shown = await ada.post(`${AUTH}/two-factor/get-totp-uri`, { password: PASSWORD })
    assert.deepEqual([shown.status, shown.body.code], [400, 'TOTP_NOT_ENABLED'])
  },

  async 'client-direct-url'() {
    await copyOfClientUrl('direct_url')
  },

  async 'client-url'() {
    await copyOfClientUrl('url')
  },

  async 'jwt-key'() {
    const ada = await t.signUp('Ada')
    const token = async () => ada.get(`${AUTH}/token`)
    assert.equal((await token()).status, 200)
    await copy(sql`update service.jwt_key set sealed_key = (select sealed_key from service.jwt_key where state = 'standby')
      where state = 'signing'`)
    assert.equal((await token()).status, 503)
  },

  async mail() {
    await t.mails()
    for (const name of ['ada', 'eve'])
      await sendMail(kernel, { to: `${name}@example.com`, subject: name, text: `for ${name}`, html: '' })
    await copy(copyOfJob('send-mail', 'mail'))
    const mails = await t.mails()
    assert.equal(mails.length, 1)
    assert.ok(mails[0]?.includes('for ada'))
  },

  async 'mail-request'() {
    const [ada, eve] = [await t.signUp('Ada'), await t.signUp('Eve')]
    await t.mails()
    for (const { email } of [ada, eve]) await t.anon.post(`${AUTH}/forget-password`, { email })
    await copy(copyOfJob('answer-mail-request', 'request'))
    const mails = await t.mails()
    assert.equal(mails.length, 1)
    assert.ok(mails[0]?.includes(ada.email))
  },

  async 'social-state'() {
    const [ada, eve] = [createVisitor(t), createVisitor(t)]
    idp.visitor = person('Eve')
    await ada.begin()
    const returned = await eve.visit(await eve.begin())
    const ofVisits = sql`from service.verification where purpose = 'social-sign-in'`
    await copy(sql`update service.verification set payload = jsonb_set(payload, '{codeVerifier}',
        (select payload -> 'codeVerifier' ${ofVisits} order by created_at limit 1))
      where value_hash = (select value_hash ${ofVisits} order by created_at desc limit 1)`)
    const before = idp.requests.length
    assert.equal(await eve.arrive(returned), mismatch)
    assert.equal(idp.requests.length, before)
    assert.deepEqual(await accountsOf(idp.visitor.sub), [])
  },

  async 'provider-token'() {
    const [ada, eve] = [person('Ada'), person('Eve')]
    const visitor = createVisitor(t)
    for (const each of [ada, eve]) {
      idp.visitor = each
      await visitor.signIn()
    }
    await copy(sql`update service.account set sealed_refresh_token = null,
        sealed_access_token = (select sealed_access_token from service.account where account_id = ${ada.sub})
      where account_id = ${eve.sub}`)
    const asked = await visitor.send(`${kernel.publicUrl()}${AUTH}/get-access-token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: kernel.publicUrl() },
      body: JSON.stringify({ providerId: 'acme' }),
    })
    const body = await asked.text()
    assert.ok(!body.includes('"accessToken":"'), body)
  },

  async 'realtime-ticket'() {
    const asked = { tables: [{ table_name: 'book' }], snapshot: true }
    const { apiKey } = await t.key(['*'])
    const issue = () => issueTicket(kernel, { apikey: apiKey, 'x-service-client': 'default' }, asked)
    const [theirs, mine] = [await issue(), await issue()]
    const hashOf = ({ ticket }: typeof mine) => hash('sha256', ticket, 'buffer')
    await copy(sql`update service.realtime_ticket
      set sealed = (select sealed from service.realtime_ticket where ticket_hash = ${hashOf(theirs)})
      where ticket_hash = ${hashOf(mine)}`)
    const opened = await t.anon.get(`/realtime?ticket=${mine.ticket}`)
    assert.deepEqual([opened.status, opened.body.code], [401, 'invalid_ticket'])
  },

  async 'webhook-secret'() {
    await copyOfWebhook('sealed_secret')
  },

  async 'webhook-headers'() {
    await copyOfWebhook('sealed_headers')
  },
}

async function copyOfClientUrl(field: 'url' | 'direct_url'): Promise<void> {
  const [theirs, mine] = [await testDatabase(), await testDatabase()]
  const name = (whose: string) => `${whose}-${field.replace('_', '-')}`
  for (const [whose, { url }] of Object.entries({ theirs, mine })) {
    const urls = field === 'url' ? { url } : { url, direct_url: url }
    assert.equal((await t.admin.post('/admin/clients', { client_name: name(whose), ...urls })).status, 201)
  }
  const { apiKey } = await t.key(['*'], { client_name: name('mine') })
  const column = sql.ref(`sealed_${field}`)
  await copy(sql`update service.database_client set
    ${column} = (select ${column} from service.database_client where client_name = ${name('theirs')})
    where client_name = ${name('mine')}`)
  const asked = await actor(t.url, { apikey: apiKey, 'x-service-client': name('mine') }).post(
    '/gateway/fetch',
    { table_name: 'note' },
  )
  assert.deepEqual([asked.status, asked.body.code], [503, 'client_unavailable'])
  const { clients } = (await t.admin.get('/admin/clients')).body.data
  const shown = (whose: string) =>
    clients.find((each: Record<string, string>) => each.client_name === name(whose))[field]
  assert.ok(shown('theirs').includes(theirs.name))
  assert.equal(shown('mine'), '***')
}

const copyOfJob = (name: string, field: string) =>
  sql`update service_jobs.job set data = jsonb_set(data, ${[field]}::text[], (
      select data -> ${field} from service_jobs.job where name = ${name} and state = 'created' order by id limit 1))
    where id = (select id from service_jobs.job where name = ${name} and state = 'created' order by id desc limit 1)`

async function copyOfWebhook(column: string): Promise<void> {
  const url = 'http://127.0.0.1:9/hook'
  const [{ id: theirs }, { id: mine }] = [
    await addWebhook(kernel, { url }),
    await addWebhook(kernel, { url }),
  ]
  await copy(sql`update service.webhook set ${sql.ref(column)} = (select ${sql.ref(column)} from service.webhook where id = ${theirs})
    where id = ${mine}`)
  const tested = await t.admin.post(webhookRequests(t).at(mine, '/test'), {}, FOR_CLIENT)
  assert.deepEqual([tested.status, tested.body.code], [409, 'webhook_unreadable'])
}

for (const [kind, steal] of Object.entries(theft))
  test(
    `a sealed value that was copied to another row does not open there, and nothing is told: ${kind}`,
    steal,
  )

test('every kind of sealed value is tried, but the one that is in no row', () => {
  assert.deepEqual([...Object.keys(theft), 'known-device'].toSorted(), [...SEALED])
})
