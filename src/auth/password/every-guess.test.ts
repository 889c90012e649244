import assert from 'node:assert/strict'
import { test } from 'node:test'
import { issueTicket } from '#identity/tickets.ts'
import { secureRandom } from '#kernel/random.ts'
import { type Answer, FORM, PASSWORD, testClock, testService, type User } from '#test/harness.ts'

/** The limits by address would apply first. */
const MANY = { requests: 10_000 }
/** The clock is turned by hand only: on a slow machine a wait must not run out. */
const clock = testClock({ isStopped: true })
const t = await testService({
  clock,
  config: {
    rate_limits: {
      enabled: true,
      rules: {
        ...{ sign_in: MANY, sign_up: MANY, two_factor: MANY },
        ...{ mail: MANY, mail_recipient: MANY, default: MANY },
      },
    },
  },
})

/** Routes that set a password and check none. */
const CHOSEN = [
  'POST /api/auth/sign-up/email',
  'POST /api/auth/admin/create-user',
  'POST /api/auth/admin/create-first-admin',
]

type Victim = User & { readonly username: string }

/** Values for the other members of a body: required ones, and a token. */
const MEMBERS: Readonly<Record<string, (victim: Victim, path: string) => unknown>> = {
  email: ({ email }) => email,
  username: ({ username }) => username,
  newPassword: () => 'another good password',
  newEmail: ({ email }) => `new-${email}`,
  token: ({ id: userId, email: address }, path) =>
    issueTicket(
      t.service.kernel,
      PURPOSES.find((purpose) => path.endsWith(`/${purpose}`)) ?? 'verify-email',
      {
        userId,
        sessionId: null,
        address,
        lifetime: 86_400_000,
        payload: {},
      },
    ),
}

const PURPOSES = ['delete-user', 'change-email'] as const

/** `counts`: with the guesses of strangers, or with those of the session that sends it. */
type Way = {
  readonly route: string
  readonly counts: 'stranger' | 'session'
  guess(victim: Victim, password: string): Promise<Answer>
}

/** Every route of the document that takes a password, and how to guess one there. */
async function ways(): Promise<readonly Way[]> {
  const { paths, components } = (await t.anon.get('/openapi.json')).body
  const resolve = (schema: { $ref?: string }) =>
    schema.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1) ?? '']
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations as object).flatMap(([method, { requestBody, security = [] }]) => {
      const { [FORM['content-type']]: form, 'application/json': json } = requestBody?.content ?? {}
      const schema = resolve((form ?? json)?.schema ?? {})
      const route = `${method.toUpperCase()} ${path}`
      const field = Object.keys(schema.properties ?? {}).find((name) => /^(?!new).*password/i.test(name))
      if (field === undefined || CHOSEN.includes(route)) return []
      const required: string[] = form === undefined ? (schema.required ?? []) : ['token']
      const others = required.filter((name) => name !== field)
      const bodyFor = async (victim: Victim, password: string) => {
        const body: Record<string, string> = { [field]: password }
        for (const name of others) {
          assert.ok(MEMBERS[name], `say in MEMBERS what ${name} of ${route} is`)
          body[name] = String(await MEMBERS[name](victim, path))
        }
        return body
      }
      return [
        {
          route,
          counts: form === undefined && security.length > 0 ? 'session' : 'stranger',
          async guess(victim: Victim, password: string) {
            const body = await bodyFor(victim, password)
            if (form === undefined) return victim.send(method.toUpperCase(), path, { body })
            // A page asks for the password of a caller without a session.
            return t.anon.send('POST', path, { raw: new URLSearchParams(body).toString(), headers: FORM })
          },
        },
      ]
    }),
  )
}

async function victim(): Promise<Victim> {
  const user = await t.signUp('Ada')
  const username = `ada_${secureRandom(4).toString('hex')}`
  assert.equal((await user.post('/api/auth/update-user', { username })).status, 200)
  return { ...user, username }
}

test('wrong passwords count at every route that takes one, those of strangers and those of a session apart', async () => {
  const all = await ways()
  const routes = all.map(({ route }) => route)
  for (const known of [
    'sign-in/email',
    'sign-in/username',
    'change-password',
    'delete-user',
    'verify-email',
    'confirm/verify-email',
    'confirm/change-email',
    'confirm/delete-user',
  ])
    assert.ok(routes.includes(`POST /api/auth/${known}`), `${known} of ${routes}`)
  for (const way of all) {
    const ada = await victim()
    for (let wrong = 0; wrong < 5; wrong++) {
      const { status, text } = await way.guess(ada, 'wrong password')
      assert.ok([400, 401, 403].includes(status), `${way.route}: ${status} ${text}`)
    }
    for (const other of all.filter(({ counts }) => counts === way.counts)) {
      const { status, headers } = await other.guess(ada, PASSWORD)
      assert.deepEqual([status, headers.get('retry-after')], [429, '1'], `${other.route} after ${way.route}`)
    }
    const apart = all.find(({ counts }) => counts !== way.counts)
    const { status: free } = (await apart?.guess(ada, 'wrong password')) ?? {}
    assert.ok(free === 400 || free === 401, `${apart?.route} after ${way.route}: ${free}`)
    const { status } = await ada.get('/api/auth/get-session')
    assert.equal(status, 200, 'the account is still there')
  }
})

test('the right password clears the bucket for all routes, of a session and of strangers', async () => {
  const ada = await victim()
  const change = (currentPassword: string) =>
    ada.post('/api/auth/change-password', { currentPassword, newPassword: PASSWORD })
  const changeEmail = (password: string) =>
    ada.post('/api/auth/change-email', { newEmail: `new-${ada.email}`, password })
  const byEmail = (password: string) => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password })
  const byUsername = (password: string) =>
    t.anon.post('/api/auth/sign-in/username', { username: ada.username, password })
  for (let round = 0; round < 3; round++) {
    for (const guess of [change, changeEmail, change, changeEmail])
      assert.equal((await guess('wrong password')).status, 400)
    for (const guess of [byEmail, byUsername, byEmail, byUsername])
      assert.equal((await guess('wrong password')).status, 401)
    assert.equal((await change(PASSWORD)).status, 200)
    assert.equal((await byEmail(PASSWORD)).status, 200)
  }
})
