import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPERATOR_RIGHTS } from '#kernel/config/sections/auth-admin.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { byBearer, byCookie, operatorOf, sending } from '#test/operators.ts'
import { deviceToken } from '#test/proof-races/devices.ts'
import { impersonated } from './impersonated.ts'

/** A role for each part of the operator's routes, and one with rights on a client alone. `guarded` requires a second factor. */
const t = await testService({
  config: {
    auth: {
      admin: {
        allow_impersonating_admins: true,
        roles: {
          ...Object.fromEntries(OPERATOR_RIGHTS.map((right) => [right, { operator: [right] }])),
          reader: { gateway: { default: ['users.read', 'management.read'] } },
          guarded: {},
        },
      },
      two_factor: { required_for: ['guarded'] },
      one_time_token: { enabled: true },
      device: { clients: { tv: {} } },
    },
  },
})
const key = await t.key(['*', 'gateway.bypass_row_level_security'])
const ROLES = ['user', 'admin', 'reader', ...OPERATOR_RIGHTS]
const FORMS = [
  ...(['Bearer', 'cookie', 'stale', 'impersonated', 'restricted', 'key', 'key as Bearer'] as const),
  ...(['derived', 'stale derived', 'device', 'stale device'] as const),
] as const
type Form = (typeof FORMS)[number]
/** A session that comes from another one has the rights of the same roles, so a few roles tell. */
const rolesFor = (form: Form): readonly string[] =>
  form.endsWith('derived') || form.endsWith('device') ? ['user', 'admin', 'keys'] : ROLES
const isStale = (form: Form): boolean => form.startsWith('stale')

type Route = { readonly method: string; readonly path: string; readonly access: string }
const nameOf = ({ method, path }: Route) => `${method} ${path}`
const OPEN = ['open', 'open (own host)', 'open (callers on this machine)']
const ROUTES: readonly Route[] = t.service.book
  .entries()
  .filter(({ surface, access }) => surface === 'gateway' && !OPEN.includes(access))

/** The operator's routes besides DELETE that demand a proof within ten minutes: keys, and all rows of a client at once. */
const DEMANDING = [
  'POST /admin/api-keys',
  'PATCH /admin/api-keys/{id}',
  'POST /admin/api-keys/{id}/rotate',
  'PUT /admin/api-key-config',
  'PUT /admin/api-key-clients/{client_name}',
  'PUT /admin/clients/{name}/row-level-security',
  'GET /admin/backups/{id}/download',
  'POST /admin/backups/{id}/restore',
  'POST /query/sql',
  'POST /gateway/sql',
  'POST /gateway/query',
  // Shows what policies hide.
  'POST /see-as',
  // Its body is SQL.
  'PUT /management/functions',
  'POST /management/functions',
]
const demandsProof = (route: Route): boolean =>
  DEMANDING.includes(nameOf(route)) ||
  (route.method === 'DELETE' && /^\/(admin|management)\//.test(route.path))

/** The right by the name of the access rule: `operator: keys`, `pipelines.run`; `data` where each table has its own. */
function rightOf({ access }: Route): string {
  if (access === 'open, or key where the route asks for one') return 'public'
  // Only the ticket says who calls.
  if (access === 'ticket of a key or session') return 'public'
  if (access === 'open (more details for operators)') return 'health'
  if (access === 'key or session with the right of each table') return 'data'
  const [, right] = /session with (operator: \w+|[a-z_.]+)/.exec(access) ?? []
  assert.ok(right, `the access rule "${access}" says nothing of sessions`)
  return right
}

/** Whether the role opens the route, as far as that can be said before the body is read. */
function opens(role: string, right: string): boolean {
  if (role === 'admin' || right === 'health' || right === 'public') return true
  if (role === 'reader') return right === 'data' || right === 'management.read'
  if (right === 'data') return role !== 'user'
  return right === `operator: ${role}`
}

const ANY_ROLE: Readonly<Partial<Record<Form, string>>> = {
  impersonated: '403 not_while_impersonating',
  restricted: '403 two_factor_required',
  'key as Bearer': '401 invalid_session',
}

function expected(route: Route, role: string, form: Form): string {
  const right = rightOf(route)
  if (right === 'public') return 'open'
  if (form === 'key') return right.startsWith('operator: ') ? '403 insufficient_rights' : 'open'
  const closed = ANY_ROLE[form]
  if (closed !== undefined) return closed
  if (role === 'user' || !opens(role, right)) return '403 insufficient_rights'
  return isStale(form) && demandsProof(route) ? '403 session_not_fresh' : 'open'
}

const REFUSALS = [
  ...[
    'session_required',
    'session_not_fresh',
    'invalid_session',
    'two_factor_required',
    'not_while_impersonating',
  ],
  ...[
    'insufficient_rights',
    'api_key_required',
    'invalid_api_key',
    'invalid_origin',
    'missing_or_null_origin',
  ],
]
const outcomeOf = ({ status, body }: Answer): string =>
  REFUSALS.includes(body?.code) ? `${status} ${body.code}` : 'open'

async function callerAs(role: string, form: Form): Promise<Actor> {
  if (form === 'key') return key
  if (form === 'key as Bearer') return sending(t, { authorization: `Bearer ${key.apiKey}` })
  if (form === 'restricted') return byBearer(t, await operatorOf(t, `${role},guarded`))
  const person = await operatorOf(t, role, isStale(form) ? 11 : 0)
  if (form === 'cookie') return byCookie(t, person)
  if (form.endsWith('derived')) return byBearer(t, await derivedFrom(person))
  if (form.endsWith('device')) return byBearer(t, await deviceOf(person))
  if (form !== 'impersonated') return byBearer(t, person)
  const admin = await operatorOf(t, 'admin')
  return byBearer(t, await impersonated(t, admin, person, { parentId: admin.sessionId }))
}

type Session = { readonly token: string }

/** Begun with a one-time token of the person. */
async function derivedFrom(person: Actor): Promise<Session> {
  const { body } = await person.get('/api/auth/one-time-token/generate')
  const answer = await t.anon.post('/api/auth/one-time-token/verify', { token: body.token })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.session
}

/** Of a device that the person has approved. */
async function deviceOf(person: Actor): Promise<Session> {
  const { body: code } = await t.anon.post('/api/auth/device/code', { client_id: 'tv' })
  const approved = await person.post('/api/auth/device/approve', { userCode: code.user_code })
  assert.equal(approved.status, 200, approved.text)
  const answer = await t.anon.post('/api/auth/device/token', deviceToken(code.device_code))
  assert.equal(answer.status, 200, answer.text)
  return { token: answer.body.access_token }
}

/** Nothing that a parameter names exists, and no body is complete, so an open route changes nothing. */
const ask = (caller: Actor, { method, path }: Route): Promise<Answer> => {
  const url = path
    .replace('{route_key}', 'docs')
    .replace('{op}', 'fetch')
    .replace(/\{(\w+)\}/g, '$1')
  return caller.send(method, url, method === 'GET' ? {} : { body: {} })
}

for (const form of FORMS)
  test(`every route of the gateway answers every role (${form}) as its access rule and the list of demands say`, async () => {
    const wrong: string[] = []
    for (const role of rolesFor(form)) {
      const caller = await callerAs(role, form)
      const check = async (route: Route) => {
        const found = outcomeOf(await ask(caller, route))
        const right = expected(route, role, form)
        if (found !== right) wrong.push(`${nameOf(route)} as ${role}: expected ${right}, got ${found}`)
      }
      await Promise.all(ROUTES.map(check))
    }
    assert.deepEqual(wrong, [])
  })

test('the lists name routes that exist, and every part but audit has some', () => {
  const names = ROUTES.map(nameOf)
  assert.deepEqual(
    DEMANDING.filter((name) => !names.includes(name)),
    [],
  )
  const parts = new Set(ROUTES.map(rightOf).filter((right) => right.startsWith('operator: ')))
  assert.deepEqual(
    [...parts].toSorted(),
    ['backups', 'clients', 'keys', 'metrics', 'routes', 'settings', 'webhooks'].map(
      (part) => `operator: ${part}`,
    ),
  )
})

test('without the header a session opens none of these routes', async () => {
  const admin = await operatorOf(t, 'admin')
  for (const route of ROUTES.filter((route) => rightOf(route).startsWith('operator: '))) {
    const { status } = await ask(admin, route)
    assert.equal(status, 401, nameOf(route))
  }
})
