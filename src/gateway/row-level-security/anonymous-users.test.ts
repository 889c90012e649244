import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { actor } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { createTenants, whoIs } from '#test/tenants.ts'

const { t, sql, roles, signedIn } = await createTenants()
await sql(`
  create table post (id int primary key, author text not null default claims()->>'user_id');
  alter table post enable row level security;
  create policy all_read on post for select using (true);
  create policy known_users_write on post for insert
    with check ((current_setting('request.claims')::json ->> 'is_anonymous')::boolean = false);
  grant select, insert on post to ${roles.member}`)

test('policies tell an anonymous user from a known one, and see the upgrade at once and with the same id', async () => {
  const who = await signInAnonymously(t)
  const asAnonymous = signedIn(who)
  const seen = await whoIs(asAnonymous)
  assert.equal(seen.role, roles.member)
  assert.partialDeepStrictEqual(seen.claims, { user_id: who.id, role: 'user', is_anonymous: true })
  const insert = (as: typeof asAnonymous, id: number) =>
    as.post('/gateway/insert', { table_name: 'post', insert_body: { id } })
  assert.equal((await insert(asAnonymous, 1)).status, 403)

  const added = await ceremoniesOf(t).register(who, createAuthenticator())
  const token = added.headers.get('set-auth-token') ?? ''
  const asKnown = signedIn({ ...actor(t.url, { authorization: `Bearer ${token}` }), ...who, token })
  assert.partialDeepStrictEqual((await whoIs(asKnown)).claims, { user_id: who.id, is_anonymous: false })
  assert.equal((await insert(asKnown, 2)).status, 200)
  assert.equal((await insert(asAnonymous, 3)).status, 401)
  assert.deepEqual(await sql('select id, author from post'), [{ id: 2, author: who.id }])
})
