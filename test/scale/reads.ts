import assert from 'node:assert/strict'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { uuidv7 } from '#kernel/random.ts'
import type { Actor, TestService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { FILLED, LARGE } from './fill.ts'
import type { Seen } from './plans.ts'

/** The number of rows of a listing, which ends at 10,001 (decision 71). */
export const isTotal = ({ text }: Seen): boolean =>
  /^\s*select count\(\*\) from \(select from .* limit 10001\) as counted$/s.test(text)

/** Asks everything that reads, as a member of the large organization, as an admin and with the admin key. */
export async function readEverything(t: TestService): Promise<void> {
  const { kernel } = t.service
  const { db, now, random } = kernel
  const [member, admin] = [await createPerson(t), await createPerson(t)]
  await setRoleByOperator(kernel, admin.id, 'admin')
  const { id: organizationId } = await db
    .selectFrom('organization')
    .select('id')
    .where('slug', '=', LARGE)
    .executeTakeFirstOrThrow()
  await db
    .insertInto('member')
    .values({ id: uuidv7(now(), random), organizationId, userId: member.id, role: 'admin', createdAt: now() })
    .execute()
  const ask = async (who: Actor, [method, path, body]: Request) => {
    const { status, text } = await who.send(method, path, body === undefined ? {} : { body })
    assert.ok(status < 300, `${path}: ${text}`)
  }
  const prefixed = ([method, path, body]: Request): Request => [method, `/api/auth${path}`, body]
  for (const request of ofMember(organizationId)) await ask(member, prefixed(request))
  for (const request of ofAdmin(member.id, organizationId)) await ask(admin, prefixed(request))
  for (const request of OF_OPERATOR) await ask(t.admin, request)
  await setRoleByOperator(kernel, admin.id, 'user')
}

type Request = readonly [method: 'GET' | 'POST', path: string, body?: object | undefined]

const ofMember = (organizationId: string): readonly Request[] => [
  ['GET', '/get-session'],
  ['GET', '/list-sessions'],
  ['GET', '/list-accounts'],
  ['POST', '/is-username-available', { username: 'ada' }],
  ['GET', '/passkey/list-user-passkeys'],
  ['POST', '/organization/set-active', { organizationId }],
  ['GET', '/organization/get-active-member'],
  ['GET', '/organization/get-active-member-role'],
  ['POST', '/organization/has-permission', { permissions: { member: ['create'] } }],
  ['GET', '/organization/list'],
  ['GET', '/organization/get-organization'],
  ['GET', '/organization/get-full-organization'],
  ['GET', '/organization/list-members?limit=10'],
  ['GET', '/organization/list-invitations'],
  ['GET', '/organization/list-user-invitations'],
  ['POST', '/organization/check-slug', { slug: 'a-free-slug' }],
  ['POST', '/organization/set-active', { organizationSlug: LARGE }],
  ['POST', '/organization/set-active', { organizationId: null }],
]

const ofAdmin = (userId: string, organizationId: string): readonly Request[] => [
  ['GET', '/admin/list-users?limit=10'],
  ['GET', `/admin/list-users?filterField=email&filterOperator=eq&filterValue=user-7%40${FILLED}`],
  [
    'GET',
    '/admin/list-users?filterField=role&filterValue=admin&sortBy=createdAt&sortDirection=desc&limit=10',
  ],
  ['GET', '/admin/list-users?filterField=banned&filterValue=true&limit=10'],
  ['GET', '/admin/list-users?filterField=banned&filterValue=true&sortBy=name&limit=10'],
  ['GET', '/admin/list-users?filterField=emailVerified&filterValue=false&sortBy=createdAt&limit=10'],
  ['GET', '/admin/list-users?searchValue=user-77&searchOperator=starts_with&limit=10'],
  ['GET', '/admin/list-users?searchValue=er-7777&limit=10'],
  ['GET', '/admin/list-users?searchField=name&searchValue=er%207777&sortBy=createdAt&limit=10'],
  ['GET', '/admin/list-organizations?limit=10'],
  ['GET', `/admin/list-user-organizations?userId=${userId}`],
  ['GET', `/admin/get-organization?organizationId=${organizationId}`],
  ['GET', `/admin/list-organization-members?organizationId=${organizationId}&limit=10`],
  ['GET', `/admin/list-organization-invitations?organizationId=${organizationId}`],
  ['GET', `/admin/list-audit-events?organizationId=${organizationId}`],
  ['GET', '/admin/list-organizations?searchValue=zation-7777&limit=10'],
  ['GET', `/admin/get-user?id=${userId}`],
  ['POST', '/admin/list-user-sessions', { userId }],
  ['GET', `/admin/list-user-accounts?userId=${userId}`],
  ['GET', `/admin/list-user-factors?userId=${userId}`],
  ['GET', '/admin/list-permissions'],
  ['POST', '/admin/has-permission', { permissions: { user: ['ban'] } }],
  ['GET', '/admin/list-audit-events?limit=10'],
  ['GET', `/admin/list-audit-events?actorId=${userId}`],
  ['GET', `/admin/list-audit-events?targetId=${userId}&from=2020-01-01`],
  ['GET', '/admin/list-audit-events?action=user.banned&to=2020-01-01'],
]

const OF_OPERATOR: readonly Request[] = [
  ['GET', '/admin/api-keys?limit=10'],
  ['GET', '/admin/api-keys?client_name=default&limit=10'],
  ['GET', '/admin/clients'],
  ['GET', '/admin/api-key-config'],
]
