import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { testService } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { byBearer, OPERATE, operatorOf } from '#test/operators.ts'
import type { Person } from '#test/organizations.ts'
import { whileArriving } from '#test/slow-body.ts'

const t = await testService({
  config: {
    auth: {
      two_factor: { required_for: ['admin'] },
      admin: { roles: { minor: { operator: ['metrics'] } } },
    },
  },
})
const { db, coherence } = t.service.kernel
const rows = heldRows(t.controlUrl)
after(() => rows.close())
const boss = await newAdmin()

/** Changes of each part of the operator's routes, of things that exist. */
const { key, route, webhook } = await things()
const CHANGES: readonly (readonly [method: string, path: string, body: object])[] = [
  ['POST', '/admin/api-keys', { name: 'held', client_name: 'default', rights: ['*'] }],
  ['PATCH', `/admin/api-keys/${key}`, { name: 'held' }],
  ['POST', `/admin/api-keys/${key}/rotate`, {}],
  ['DELETE', `/admin/api-keys/${key}`, {}],
  ['PUT', '/admin/api-key-config', { enforce_api_keys: false }],
  ['PUT', '/admin/api-key-clients/default', { enforce_api_keys: false }],
  ['POST', '/admin/public-routes', routeNamed('held')],
  ['PATCH', `/admin/public-routes/${route}`, { metadata: { held: true } }],
  ['DELETE', `/admin/public-routes/${route}`, {}],
  ['POST', '/admin/webhooks', webhookTo('https://example.com/held')],
  ['PATCH', `/admin/webhooks/${webhook}`, { description: 'held' }],
  ['POST', `/admin/webhooks/${webhook}/rotate-secret`, {}],
  ['POST', `/admin/webhooks/${webhook}/replay`, { status: 'failed' }],
  ['DELETE', `/admin/webhooks/${webhook}`, {}],
  ['POST', '/admin/clients', { client_name: 'held', url: t.clientUrl }],
]

/** Whose session has shown the factor that the role requires. */
async function newAdmin(): Promise<Person> {
  const person = await operatorOf(t, 'admin')
  await db
    .updateTable('session')
    .set({ shown: ['totp'] })
    .where('id', '=', person.sessionId)
    .execute()
  await coherence.settle()
  return person
}

async function things() {
  const admin = byBearer(t, boss)
  const key = { name: 'kept', client_name: 'default', rights: ['*'] }
  const made = await admin.post('/admin/api-keys', key)
  assert.equal((await admin.post('/admin/public-routes', routeNamed('kept'))).status, 201)
  const hook = await admin.post('/admin/webhooks', webhookTo('https://example.com/kept'))
  assert.equal(hook.status, 201, hook.text)
  return { key: made.body.data.record.id as string, route: 'kept', webhook: hook.body.data.id as string }
}

function routeNamed(route_key: string) {
  return { route_key, client_name: 'default', allowed_ops: ['fetch'], table_name: 'doc' }
}

function webhookTo(url: string) {
  return { route_key: 'gateway_insert', url }
}

/** Everything that the changes could have changed. */
const state = async (): Promise<string> => {
  const tables = ['api_key', 'api_key_config', 'public_route', 'webhook', 'database_client']
  const all = await Promise.all(
    tables.map((table) =>
      sql`select * from service.${sql.ref(table)} order by 1`.execute(db).then(({ rows }) => rows),
    ),
  )
  return JSON.stringify(all)
}

/** Each ends the standing of the person. As a statement, so that it can wait before its commit. */
const ENDS: Readonly<Record<string, readonly [statement: string, idOf: (person: Person) => string]>> = {
  demoted: [`update service."user" set role = 'minor' where id = $1`, ({ id }) => id],
  banned: [`update service."user" set banned = true where id = $1`, ({ id }) => id],
  'without the factor that the role requires': [
    `with owner as (update service."user" u set updated_at = u.updated_at
       from service.session s where s.id = $1 and u.id = s.user_id)
     update service.session set shown = '{}' where id = $1`,
    ({ sessionId }) => sessionId,
  ],
  'signed out': ['delete from service.session where id = $1', ({ sessionId }) => sessionId],
}

for (const [name, [statement, idOf]] of Object.entries(ENDS)) {
  test(`a change by a session whose admin is ${name} meanwhile is refused in its transaction, and changes nothing`, async () => {
    for (const [method, path, body] of CHANGES) {
      const before = await state()
      const person = await newAdmin()
      const me = byBearer(t, person)
      assert.equal((await me.get('/admin/clients')).status, 200)
      // The first checks see the former state; the transaction that acts waits for the row.
      const held = await rows.hold(statement, [idOf(person)])
      const answer = me.send(method, path, { body })
      await held.waiting(1)
      await held.release()
      const { status, text } = await answer
      assert.ok([401, 403].includes(status), `${method} ${path} answered ${status} ${text}`)
      assert.equal(await state(), before, `${method} ${path}`)
    }
  })

  test(`a body that arrives when its admin is ${name} does nothing`, async () => {
    for (const [method, path, body] of CHANGES) {
      if (method !== 'POST') continue
      const before = await state()
      const person = await newAdmin()
      const headers = { ...OPERATE, authorization: `Bearer ${person.token}`, 'x-service-client': 'default' }
      const answer = await whileArriving(t.url, { path, headers, body }, async () => {
        const held = await rows.hold(statement, [idOf(person)])
        await held.release()
        await coherence.settle()
      })
      assert.match(answer, /^HTTP\/1\.1 40[13]/, `POST ${path}`)
      assert.equal(await state(), before, `POST ${path}`)
    }
  })
}

test('these changes are made by an admin who stays one', async () => {
  const me = byBearer(t, await newAdmin())
  const inOrder = CHANGES.toSorted(([one], [other]) => Number(one === 'DELETE') - Number(other === 'DELETE'))
  for (const [method, path, body] of inOrder) {
    const { status, text } = await me.send(method, path, { body })
    assert.ok(status < 300, `${method} ${path} answered ${status} ${text}`)
  }
})
