import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after } from 'node:test'
import { testDatabase, testServerUrl, withClient } from './database.ts'
import { EVERY_FEATURE } from './every-feature.ts'
import { type Actor, actor, type Options, testService, type User } from './harness.ts'

type Overrides = NonNullable<Options['config']>
/** Further clients of the same database, and settings. */
type MoreClients = (given: {
  readonly url: string
  readonly policies: object
}) => Pick<Overrides, 'clients' | 'outbound' | 'rate_limits'>

/**
 * A service with two organizations on one database with row-level security by session. Ada owns acme and Bea is a member of it; Cem owns
 * beta; Dora has no organization. Document 1 belongs to acme, 2 to beta, 3 is public and 4 is Dora's.
 */
export async function createTenants(more: MoreClients = () => ({})) {
  // Roles are global to the server, which other test files use at the same time, so their names are unique.
  const suffix = randomBytes(4).toString('hex')
  const roles = { anon: `anon_${suffix}`, member: `authenticated_${suffix}` }
  const database = await testDatabase()
  const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
  const sql = (text: string, role = 'none') =>
    withClient(database.url, async (client) => {
      await client.query(`set role ${role}`)
      return (await client.query(text)).rows
    })
  const owner = new URL(database.url).username
  await onServer(
    `create role ${roles.anon} nologin; create role ${roles.member} nologin; grant ${roles.anon}, ${roles.member} to "${owner}"`,
  )
  await sql(tablesFor(roles))

  const policies = { enabled: true, anonymous_role: roles.anon, signed_in_role: roles.member }
  const { clients, ...settings } = more({ url: database.url, policies })
  const t = await testService({
    config: {
      ...settings,
      auth: {
        admin: {
          roles: {
            keeper: { gateway: { app: ['*'], foreign: ['*'] } },
            publisher: { operator: ['routes', 'webhooks'] },
          },
        },
        two_factor: { required_for: ['auditor'] },
        ...EVERY_FEATURE,
      },
      clients: {
        // One connection, so that every request reuses a connection that another caller has used.
        app: {
          url: database.url,
          max_connections: 1,
          enforce_api_keys: false,
          row_level_security: policies,
        },
        wide: { url: database.url, max_connections: 4, row_level_security: policies },
        ...clients,
      },
    },
  })
  after(async () => {
    await t.stop()
    await database.drop()
    await onServer(`drop role ${roles.anon}; drop role ${roles.member}`)
  })

  const [ada, bea, cem, dora] = [
    await t.signUp('Ada'),
    await t.signUp('Bea'),
    await t.signUp('Cem'),
    await t.signUp('Dora'),
  ]
  /** Changes the control database and waits until all caches have been invalidated. */
  const changeControlDatabase = async (text: string, values: readonly unknown[]) => {
    await withClient(t.controlUrl, (client) => client.query(text, [...values]))
    await t.service.kernel.coherence.settle()
  }
  const acme = await createOrganization(changeControlDatabase, 'acme', { owner: ada, member: bea })
  const beta = await createOrganization(changeControlDatabase, 'beta', { owner: cem })
  await sql(`insert into doc values (1, '${acme}', null, 'acme one', false), (2, '${beta}', null, 'beta one', false),
    (3, null, null, 'for all', true), (4, null, '${dora.id}', 'of Dora', false);
    insert into note values (1, 1, 'on acme', 'x'), (2, 2, 'on beta', 'x'), (3, 3, 'on all', 'x')`)

  return {
    t,
    database,
    sql,
    changeControlDatabase,
    roles: { ...roles, owner },
    users: { ada, bea, cem, dora },
    acme,
    beta,
    anon: actor(t.url, { 'x-service-client': 'app' }),
    signedIn: ({ token }: User, headers: Record<string, string> = {}) =>
      actor(t.url, { 'x-service-client': 'app', 'x-service-auth-session-token': token, ...headers }),
    createOrganization: (slug: string, members: Readonly<Record<string, User>>) =>
      createOrganization(changeControlDatabase, slug, members),
  }
}

const tablesFor = ({ anon, member }: { anon: string; member: string }) => `
  create function claims() returns jsonb language sql stable as $$ select current_setting('request.claims')::jsonb $$;
  create table doc (id int primary key, organization_id uuid, owner_id uuid, title text not null, open boolean not null default false);
  create table note (id int primary key, doc_id int references doc, text text, author text not null default (claims()->>'user_id'));
  create table plain (id int primary key, secret text unique);
  alter table doc enable row level security;
  alter table note enable row level security;
  create policy reads on doc for select using (open or organization_id::text = claims()->>'organization_id' or owner_id::text = claims()->>'user_id');
  create policy inserts on doc for insert with check (organization_id::text = claims()->>'organization_id');
  create policy updates on doc for update using (organization_id::text = claims()->>'organization_id' and claims()->>'organization_role' = 'owner');
  create policy deletes on doc for delete using (organization_id::text = claims()->>'organization_id' and claims()->>'organization_role' = 'owner');
  create policy notes on note using (exists (select from doc where doc.id = doc_id));
  create function whoami() returns jsonb language sql stable as $$ select jsonb_build_object('role', current_user, 'claims', claims()) $$;
  create view who as select current_user::text as role, current_setting('request.claims') as claims;
  grant select on doc, note, who to ${anon};
  grant select, insert, update, delete on doc, note to ${member};
  grant select on who to ${member};
  insert into plain values (1, 'hidden')`

/**
 * Creates an organization with SQL. `members` maps roles to users. The organization becomes active in all
 * sessions of these users.
 */
async function createOrganization(
  changeControlDatabase: (text: string, values: readonly unknown[]) => Promise<void>,
  slug: string,
  members: Readonly<Record<string, User>>,
): Promise<string> {
  const id = randomUUID()
  await changeControlDatabase(
    `insert into service.organization (id, name, slug, created_at, updated_at) values ($1, $2, $2, now(), now())`,
    [id, slug],
  )
  for (const [role, user] of Object.entries(members)) {
    await changeControlDatabase(
      `insert into service.member (id, organization_id, user_id, role, created_at) values ($1, $2, $3, $4, now())`,
      [randomUUID(), id, user.id, role],
    )
    await changeControlDatabase(`update service.session set active_organization_id = $1 where user_id = $2`, [
      id,
      user.id,
    ])
  }
  return id
}

export const fetchDocs = (who: Actor, more: object = {}) =>
  who.post('/gateway/fetch', { table_name: 'doc', columns: 'id,title', sort_by: { field: 'id' }, ...more })

export async function docsOf(who: Actor): Promise<readonly number[]> {
  const answer = await fetchDocs(who)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.map(({ id }: { id: number }) => id)
}

export const insertDoc = (who: Actor, row: object, headers: Record<string, string> = {}) =>
  who.send('PUT', '/gateway/insert', { headers, body: { table_name: 'doc', insert_body: row } })

/** The role and the claims that a statement of this caller sees. */
export async function whoIs(who: Actor) {
  const answer = await who.post('/gateway/fetch', { table_name: 'who' })
  assert.equal(answer.status, 200, answer.text)
  const [{ role, claims }] = answer.body.data
  return { role, claims: JSON.parse(claims) }
}
