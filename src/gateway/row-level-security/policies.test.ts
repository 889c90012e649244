import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, actor } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { createTenants, docsOf, fetchDocs, insertDoc, whoIs } from '#test/tenants.ts'

const { sql, changeControlDatabase, roles, users, acme, beta, anon, signedIn, createOrganization, t } =
  await createTenants()
const { ada, bea, cem, dora } = users
// A function that a view calls writes for a reader.
await sql(`
  create table visit (at timestamptz default now());
  create function visited() returns int language sql security definer as 'insert into visit default values returning 1';
  create view guestbook as select visited() as visits;
  grant select on guestbook to ${roles.member};
  create table diary (id int primary key, owner text, mood text);
  alter table diary enable row level security;
  create policy own on diary using (owner = claims()->>'user_id');
  grant select, update, delete on diary to ${roles.member};
  insert into diary select n, '${dora.id}', 'sad' from generate_series(1, 12000) n;
  analyze diary`)

test('policies see user, organization and organization role of the session', async () => {
  assert.deepEqual(await whoIs(anon), { role: roles.anon, claims: {} })
  const { role, claims } = await whoIs(signedIn(bea))
  assert.equal(role, roles.member)
  const { session_id, ...rest } = claims
  assert.match(session_id, /^[0-9a-f-]{36}$/)
  assert.deepEqual(rest, {
    user_id: bea.id,
    role: 'user',
    organization_id: acme,
    organization_role: 'member',
    two_factor: false,
    impersonated_by: null,
    is_anonymous: false,
  })
  assert.equal((await whoIs(signedIn(dora))).claims.organization_id, null)
})

test('organizations are isolated from each other in every operation', async () => {
  const seen: readonly (readonly [who: Actor, ids: readonly number[]])[] = [
    [anon, [3]],
    [signedIn(ada), [1, 3]],
    [signedIn(bea), [1, 3]],
    [signedIn(cem), [2, 3]],
    [signedIn(dora), [3, 4]],
  ]
  for (const [who, ids] of seen) {
    assert.deepEqual(await docsOf(who), ids)
    const counted = await who.post('/query/count', { table_name: 'doc' })
    assert.equal(counted.body.count, ids.length)
    assert.equal((await fetchDocs(who, { count: 'exact', limit: 1 })).body.count, ids.length)
    const byColumn = await who.get('/data?view=doc&eq_column=title&eq_value=acme%20one')
    assert.equal(byColumn.body.data.length, ids.includes(1) ? 1 : 0)
    const grouped = await fetchDocs(who, { columns: '*', group_by: 'title' })
    assert.equal(grouped.body.post_processing.grouped.length, ids.length)
    const notes = await who.post('/gateway/fetch', { table_name: 'note', columns: 'id,doc(id)' })
    assert.deepEqual(
      notes.body.data.map(({ id }: { id: number }) => id),
      ids.filter((id) => id < 4),
    )
    const inner = await who.post('/gateway/fetch', {
      table_name: 'doc',
      columns: 'id,note(text)',
      conditions: [{ eq_column: 'id', eq_value: 2 }],
    })
    assert.equal(inner.body.data.length, ids.includes(2) ? 1 : 0)
    const called = await who.post('/rpc/whoami')
    assert.equal(called.body.data[0].whoami.role, who === anon ? roles.anon : roles.member)
    const transaction = await who.post('/gateway/transaction', {
      operations: [{ id: 'a', kind: 'fetch', payload: { table_name: 'doc', columns: 'id' } }],
    })
    assert.equal(transaction.body.results[0].data.length, ids.length)
  }
})

test('a count that is estimated shows nothing of the rows that policies hide', async () => {
  for (const [who, all] of [
    [bea, 0],
    [dora, 12_000],
  ] as const)
    for (const mode of ['planned', 'estimated']) {
      const body = {
        table_name: 'diary',
        conditions: [{ eq_column: 'mood', eq_value: 'sad' }],
        count: mode,
        head: true,
      }
      const answers = [
        await signedIn(who).post('/gateway/fetch', body),
        await signedIn(who).post('/query/count', body),
        await signedIn(who).send('DELETE', '/gateway/delete', { body: { ...body, offset: 12_000 } }),
      ]
      assert.deepEqual(answers.map(({ body }) => body.count), [all, all, all], mode) // biome-ignore format: short
    }
})

test('policies apply to writes, and their errors reveal nothing about rows', async () => {
  const [owner, member] = [signedIn(ada), signedIn(bea)]
  const own = await insertDoc(member, { id: 10, organization_id: acme, title: 'acme ten' })
  assert.equal(own.status, 200, own.text)
  const foreign = await insertDoc(member, { id: 11, organization_id: beta, title: 'stray' })
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'permission_denied'])
  assert.doesNotMatch(foreign.text, new RegExp(beta))
  assert.equal((await insertDoc(anon, { id: 12, organization_id: acme, title: 'x' })).status, 403)

  const rename = (who: Actor, id: number) =>
    who.post('/gateway/update', {
      table_name: 'doc',
      set: { title: 'renamed' },
      conditions: [{ eq_column: 'id', eq_value: id }],
    })
  assert.equal((await rename(member, 10)).body.affected_rows, 0)
  assert.equal((await rename(owner, 10)).body.affected_rows, 1)
  assert.equal((await rename(owner, 2)).body.affected_rows, 0)
  const all = await owner.send('DELETE', '/gateway/delete', {
    body: { table_name: 'doc', allow_unbounded: true, columns: ['id'] },
  })
  assert.deepEqual([all.status, all.body.code], [409, 'foreign_key_violation'])
  assert.equal((await sql('select from doc')).length, 5)
  const removed = await owner.send('DELETE', '/gateway/delete', {
    body: { table_name: 'doc', resource_id: 10 },
  })
  assert.deepEqual([removed.body.affected_rows, (await sql('select from doc')).length], [1, 4])
})

test('a table without a grant to the role is inaccessible, and errors do not reveal it', async () => {
  const answer = await signedIn(ada).post('/gateway/fetch', { table_name: 'plain' })
  assert.deepEqual([answer.status, answer.body.code], [403, 'permission_denied'])
  assert.doesNotMatch(answer.text, /hidden/)
  assert.equal(answer.body.error, `permission denied for table plain; the request acts as ${roles.member}`)
  const stranger = await anon.post('/gateway/fetch', { table_name: 'plain' })
  assert.equal(
    stranger.body.error,
    `permission denied for table plain; without a session, a request acts as ${roles.anon}, unless its key has the right gateway.bypass_row_level_security`,
  )
})

test('a policy that refuses a row says if the session has no active organization', async () => {
  const WITHOUT =
    /; the request acts as \w+, and no organization is active in its session: claim organization_id is null$/
  const insert = (who: Actor) =>
    who.send('PUT', '/gateway/insert', {
      body: { table_name: 'doc', insert_body: { id: 77, organization_id: acme, title: 'of acme' } },
    })
  const [without, other] = [await insert(signedIn(dora)), await insert(signedIn(cem))]
  for (const answer of [without, other])
    assert.deepEqual([answer.status, answer.body.code], [403, 'permission_denied'])
  assert.match(without.body.error, WITHOUT)
  assert.doesNotMatch(other.body.error, /organization_id/)
  const stranger = await insert(anon)
  assert.equal(stranger.status, 403)
  assert.doesNotMatch(stranger.text, /organization_id is null/)
  // A missing right is another matter.
  const right = await signedIn(dora).post('/gateway/fetch', { table_name: 'plain' })
  assert.doesNotMatch(right.text, /organization_id/)
  assert.equal((await sql('select from doc where id = 77')).length, 0)
})

test('leaving an organization or losing a role takes effect at once', async () => {
  const fay = await t.signUp('Fay')
  const club = await createOrganization('club', { owner: fay })
  await sql(`insert into doc values (20, '${club}', null, 'club', false)`)
  const who = signedIn(fay)
  assert.deepEqual(await docsOf(who), [3, 20])
  await changeControlDatabase(`update service.member set role = 'member' where user_id = $1`, [fay.id])
  assert.equal((await whoIs(who)).claims.organization_role, 'member')
  await changeControlDatabase('delete from service.member where user_id = $1', [fay.id])
  const { claims } = await whoIs(who)
  assert.deepEqual([claims.organization_id, claims.organization_role], [null, null])
  assert.deepEqual(await docsOf(who), [3])
  await sql('delete from doc where id = 20')
})

test('an impersonated session reads as the user, and is refused in every write, transaction, function and SQL, with a row in the audit trail', async () => {
  const root = await t.signUp('Root')
  await changeControlDatabase(`update service."user" set role = 'admin' where id = $1`, [root.id])
  const parentId = await sessionIdOf(root)
  const early = await impersonated(t, root, dora, { parentId })
  const show = ({ id }: { id: string }, shown: string[]) =>
    changeControlDatabase(
      'update service.session set shown = $2 where user_id = $1 and impersonated_by is null',
      [id, shown],
    )
  await show(root, ['password', 'totp'])
  const session = await impersonated(t, root, dora, { parentId })
  const headers = { 'x-service-client': 'app' }
  const who: Actor = {
    ...session,
    get: (path, ask) => session.get(path, { headers, ...ask }),
    post: (path, body, ask) => session.post(path, body, { headers, ...ask }),
  }
  const { claims } = await whoIs(who)
  assert.deepEqual([claims.user_id, claims.impersonated_by], [dora.id, root.id])
  assert.equal(claims.two_factor, true)
  const before = actor(t.url, { 'x-service-client': 'app', 'x-service-auth-session-token': early.token })
  assert.equal((await whoIs(before)).claims.two_factor, false, 'it began before the factor')
  for (const one of [root, dora]) await show(one, ['password'])
  await show(dora, ['password', 'totp'])
  assert.equal((await whoIs(who)).claims.two_factor, false, 'nobody has passed the factor of the user')
  await show(dora, ['password'])
  assert.deepEqual(await docsOf(who), [3, 4])

  const insert = { table_name: 'note', insert_body: { id: 90, doc_id: 4, text: 'x' } }
  const where = { conditions: [{ eq_column: 'id', eq_value: 4 }] }
  const tries = [
    await session.send('PUT', '/gateway/insert', { headers, body: insert }),
    await who.post('/gateway/update', { table_name: 'doc', ...where, set: { title: 'changed' } }),
    await session.send('DELETE', '/gateway/delete', { headers, body: { table_name: 'doc', ...where } }),
    await who.post('/gateway/transaction', {
      operations: [{ id: 'one', kind: 'insert', payload: insert }],
    }),
    await who.post('/rpc/whoami'),
    await who.get('/rpc/whoami'),
    await who.post('/pipelines/simulate', { source: { table_name: 'doc' } }),
    await who.post('/pipelines', {
      source: { table_name: 'doc' },
      sink: { table_name: 'note' },
      dry_run: true,
    }),
    await actor(t.url, { ...t.admin.headers, 'x-service-auth-session-token': session.token }).post(
      '/gateway/query',
      { query: 'select 1' },
      { headers },
    ),
  ]
  for (const [index, { status, body }] of tries.entries())
    assert.deepEqual([status, body.code], [403, 'not_while_impersonating'], `${index}`)
  assert.equal((await sql('select from note where id = 90')).length, 0)

  const visit = (visitor: Actor) => visitor.post('/gateway/fetch', { table_name: 'guestbook' })
  assert.equal((await visit(signedIn(dora))).status, 200)
  const refused = await visit(who)
  assert.deepEqual([refused.status, refused.body.code], [403, 'not_while_impersonating'], refused.text)
  const { rows } = await withClient(t.controlUrl, (client) =>
    client.query(
      `select actor_id, on_behalf_of, target_id, outcome, details->>'reason' as reason, sum(count)::int as count
       from service.audit_event where action = 'impersonated_act.failed' group by 1, 2, 3, 4, 5`,
    ),
  )
  const act = { actor_id: root.id, on_behalf_of: dora.id, target_id: dora.id, outcome: 'failure' }
  assert.deepEqual(rows, [{ ...act, reason: 'not_while_impersonating', count: tries.length + 1 }])
  assert.equal((await visit(signedIn(dora))).status, 200)
  assert.equal((await sql('select from visit')).length, 2)
})

test('a session that has not shown the second factor that its role requires is refused, also when its user has one', async () => {
  const setUser = (change: string) =>
    changeControlDatabase(`update service."user" set ${change} where id = $1`, [dora.id])
  const setShown = (shown: string[]) =>
    changeControlDatabase('update service.session set shown = $2 where user_id = $1', [dora.id, shown])
  await setUser(`role = 'auditor', two_factor_enabled = true`)
  for (const answer of [await fetchDocs(signedIn(dora)), await signedIn(dora).post('/rpc/whoami')])
    assert.deepEqual([answer.status, answer.body.code], [403, 'two_factor_required'])
  await setShown(['password', 'totp'])
  assert.deepEqual(await docsOf(signedIn(dora)), [3, 4])
  assert.equal((await whoIs(signedIn(dora))).claims.two_factor, true)
  await setUser(`role = 'user', two_factor_enabled = false`)
})
