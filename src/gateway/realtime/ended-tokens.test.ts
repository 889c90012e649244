import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStream } from '#test/event-stream.ts'
import { AUDIENCE, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const acme = await startJwtIssuer({ now: () => t.service.kernel.now().getTime() / 1_000 })
const { t, sql, users, admin, adas, roles } = await createSecuredTables({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  rowLevelSecurity: { issuers: [{ issuer: acme.issuer, audience: [AUDIENCE] }] },
})
const made = await admin.post('/gateway/query', {
  query: `create table note (id int primary key, text text); alter table note enable row level security;
    create policy everything on note for select to ${roles.member} using (true); grant select on note to ${roles.member}`,
})
assert.equal(made.status, 200, made.text)
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)

const TOKENS: Readonly<Record<string, () => Promise<string>>> = {
  'JWT of an issuer': () => acme.sign({ sub: 'ada' }),
  'JWT of a session': async () => (await users.ada.get('/api/auth/token')).body.token,
}

for (const [kind, tokenOf] of Object.entries(TOKENS))
  test(`a stream by the ${kind} tells nothing more after its time, and says that it is over`, async () => {
    const stream = await openStream(`${t.url}/realtime`, {
      headers: { ...adas.headers, authorization: `Bearer ${await tokenOf()}` },
      body: { tables: [{ table_name: 'note' }] },
    })
    await stream.next('ready')
    t.advance(3_600_000)
    await sql(`insert into note (id) select coalesce(max(id), 0) + 1 from note`)
    await stream.ended
    assert.deepEqual(
      [stream.seen.at(-1)?.name, stream.seen.at(-1)?.data],
      ['end', { reason: 'token_expired' }],
    )
    assert.ok(!stream.seen.some(({ name }) => name === 'change'))
  })
