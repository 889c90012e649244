import assert from 'node:assert/strict'
import { mkdtemp } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { type Dispatcher, request } from 'undici'
import type { DoctorContext, DoctorDatabases } from '#cli/doctor-checks.ts'
import type { Doctor } from '#cli/running-doctor.ts'
import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import { createKey, type NewKey } from '#gateway/keys/keys.ts'
import { prepareLogging } from '#gateway/logging/logging-tables.ts'
import type { PipelineRegistry } from '#gateway/pipelines/registry.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Config, defaultConfig } from '#kernel/config/config.ts'
import { migrate } from '#kernel/db/migrate.ts'
import type { Resolve } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { readOutbox } from '#kernel/mail/transports.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets, type Secrets } from '#kernel/secrets.ts'
import { startKernel } from '#kernel/start.ts'
import { type Service, startService } from '../src/app.ts'
import { createTemplateDatabase, pooled, testDatabase, withClient } from './database.ts'
import { expectDetails } from './failure-details.ts'
import { documentedStatuses } from './openapi.ts'
import { removeFolder } from './temporary-folder.ts'

export const ADMIN_KEY = 'admin-key-of-the-tests-0123456789'
export const PASSWORD = 'correct horse battery'

/** A response. The body is parsed if it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export type Answer = { status: number; headers: Headers; body: any; text: string }
export type Ask = { body?: unknown; headers?: Record<string, string>; raw?: string }

/** A caller with its own headers. Paths of the auth surface begin with `/api/auth`. */
export type Actor = {
  readonly headers: Readonly<Record<string, string>>
  get(path: string, ask?: Ask): Promise<Answer>
  post(path: string, body?: unknown, ask?: Ask): Promise<Answer>
  send(method: string, path: string, ask?: Ask): Promise<Answer>
}

export type User = Actor & { readonly email: string; readonly token: string; readonly id: string }

export type TestService = {
  readonly url: string
  readonly service: Service
  readonly config: Config
  readonly clientUrl: string
  readonly loggingUrl: string
  readonly controlUrl: string
  readonly anon: Actor
  /** Sends the static admin key. */
  readonly admin: Actor
  /** Creates a key that is bound to the client `default`, and returns a caller that sends it. */
  key(
    rights: readonly string[],
    more?: Partial<NewKey>,
  ): Promise<Actor & { readonly apiKey: string; readonly keyId: string }>
  signUp(name: string): Promise<User>
  /** All log records so far, one JSON text each. */
  readonly log: readonly string[]
  /** Moves the clock forward. */
  advance(milliseconds: number): void
  /** Runs all queued jobs and returns the mails that were sent since the last call, oldest first. */
  mails(): Promise<readonly string[]>
  stop(): Promise<void>
}

type Expectation = ReturnType<typeof documentedStatuses>
type Overrides = Parameters<typeof defaultConfig>[0]
export type Options = {
  readonly config?: Overrides
  readonly controlUrl?: string
  /** In place of a new database without roles for callers. */
  readonly builtIn?: { readonly url: string; readonly callerRoles: RowLevelSecurity }
  /** Environment variables for the `url_env_var` of clients. */
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: Secrets
  readonly clock?: TestClock
  /** Named pipelines, as of a pipelines file. */
  readonly pipelines?: PipelineRegistry
  /** For the host names of outbound requests. */
  readonly resolve?: Resolve
  /** Without it the service has no findings. */
  readonly doctor?: (context: DoctorContext, databases: DoctorDatabases) => Doctor
}

/** Offset that is applied to the database's time. */
export type TestClock = {
  turned(now: Clock): Clock
  /** Moves the time forward. */
  advance(milliseconds: number): void
}

/** With `isStopped`, time moves only by `advance`, so that waits do not elapse on a slow machine. */
export function testClock({ isStopped = false } = {}): TestClock {
  let ahead = 0
  let stoppedAt: number | undefined
  return {
    turned: (now) => () => {
      if (isStopped) stoppedAt ??= now().getTime()
      return new Date((stoppedAt ?? now().getTime()) + ahead)
    },
    advance: (milliseconds) => {
      ahead += milliseconds
    },
  }
}

/** Starts a service with new databases for a test file. It is stopped after the file's tests. */
export async function testService({
  config: overrides = {},
  controlUrl,
  builtIn,
  environment = {},
  secrets = testSecrets(),
  clock = testClock(),
  pipelines,
  resolve,
  doctor,
}: Options = {}): Promise<TestService> {
  const started = stoppedAfterTests()
  const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-test-service-'))
  started.defer(() => removeFolder(dir))
  const control = controlUrl ?? (await controlDatabase())
  const client = builtIn ?? (await testDatabase())
  const logging = await testDatabase({ template: await createTemplateDatabase('logging', prepareAudit) })

  const config = testConfig(overrides, dir)
  const log: string[] = []
  const databases = {
    controlUrl: control,
    // As with an old PgBouncer, which does not support prepared statements.
    pooler: pooled(control) === control ? undefined : { url: pooled(control), prepares: false },
    builtIn: { default: pooled(client.url) },
    callerRoles: builtIn?.callerRoles,
    logging: { ownerUrl: logging.url, readerUrl: pooled(logging.url), reader: 'reader' },
  }
  const context = {
    config,
    secrets,
    environment: (name: string) => environment[name],
    log: createLog({ level: 'info', format: 'json', destination: { write: (line) => void log.push(line) } }),
  }
  const described = { ...databases, describes: 'PostgreSQL of the tests', advice: undefined }
  const service = await startService({
    ...context,
    databases,
    adminKey: ADMIN_KEY,
    ...(pipelines !== undefined && { pipelines }),
    ...(doctor !== undefined && { doctor: doctor(context, described) }),
    turned: clock.turned,
    ...(resolve && { resolve }),
  })
  started.defer(async () => expectTold(log))
  started.defer(() => service.stop())
  const url = `http://127.0.0.1:${await service.listen()}`

  // Every error status that a test receives must be in the OpenAPI document.
  const expect = documentedStatuses(service.book)
  const read = new Set<string>()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= started.disposeAsync()
    return stopped
  }
  return {
    url,
    service,
    config,
    clientUrl: client.url,
    loggingUrl: logging.url,
    controlUrl: control,
    log,
    anon: actor(url, {}, expect),
    admin: actor(url, { apikey: ADMIN_KEY }, expect),
    async key(rights, more = {}) {
      const newKey = { name: 'test', client_name: 'default', rights, ...more }
      const { api_key, record } = await createKey(
        service.kernel,
        { configured: new Set(['default']) },
        newKey,
      )
      const headers = { apikey: api_key, 'x-service-client': 'default' }
      return { ...actor(url, headers, expect), apiKey: api_key, keyId: record.id }
    },
    signUp: (name) => signUp(url, name, expect),
    advance: clock.advance,
    async mails() {
      await service.kernel.jobs.drain(service.handlers)
      const fresh = (await readOutbox(config)).filter(({ id }) => !read.has(id))
      for (const { id } of fresh) read.add(id)
      return fresh.map(({ message }) => message)
    },
    stop,
  }
}

/**
 * For all that is started from now on: it is stopped after the test that calls this, or after the file's tests. node:test must be told
 * before anything is awaited; later it may not know any more which test is running, and waits for the end of the process.
 */
function stoppedAfterTests(): AsyncDisposableStack {
  const started = new AsyncDisposableStack()
  after(() => started.disposeAsync())
  return started
}

const expectTold = (log: readonly string[]): void =>
  assert.ok(!log.some((line) => line.includes('"act_untold"')), 'an act was not told')

/** Starts a kernel without a web server, on a new control database. It is closed after the file's tests. */
export async function testKernel({
  config: overrides = {},
  controlUrl,
  clock = testClock(),
}: Options = {}): Promise<Kernel> {
  const started = stoppedAfterTests()
  const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-test-kernel-'))
  started.defer(() => removeFolder(dir))
  const log: string[] = []
  const { kernel, close } = await startKernel({
    config: testConfig(overrides, dir),
    controlUrl: controlUrl ?? (await controlDatabase()),
    secrets: testSecrets(),
    log: createLog({ level: 'error', format: 'json', destination: { write: (line) => void log.push(line) } }),
    turned: clock.turned,
  })
  started.defer(async () => expectTold(log))
  started.defer(close)
  return kernel
}

/** SERVICE_SECRET for a program that runs next to a test service. */
export const TEST_SECRET = 'secret-of-the-tests-0123456789-0123'

const testSecrets = () => createSecrets(TEST_SECRET, secureRandom)

/** Creates a migrated control database with an installation whose secret is TEST_SECRET. */
export async function controlDatabase(): Promise<string> {
  const template = await createTemplateDatabase('control', prepareControl, true)
  const { url } = await testDatabase({ template, isControl: true })
  const id = uuidv7(new Date(), secureRandom)
  await withClient(url, (client) =>
    client.query(
      'insert into service.installation (id, secret_check, control_database) values ($1, $2, current_database())',
      [id, testSecrets().derive('installation', id)],
    ),
  )
  return url
}

const prepareAudit = async (url: string): Promise<void> => void (await prepareLogging(url, undefined))

/** Creates what the first start creates, including the schema of the job queue. */
async function prepareControl(url: string): Promise<void> {
  await migrate(url)
  const { close } = await startKernel({
    config: testConfig({}, tmpdir()),
    controlUrl: url,
    secrets: testSecrets(),
    log: createLog({ level: 'silent', format: 'json' }),
  })
  await close()
}

/** The default configuration with cheap password hashes, a free port and the test's overrides. */
function testConfig(overrides: Overrides, dir: string): Config {
  const base = defaultConfig(overrides)
  return {
    ...base,
    server: { ...base.server, port: 0, data_dir: dir },
    session: {
      ...base.session,
      cookie_secure: overrides?.session?.cookie_secure ?? base.session.cookie_secure,
    },
    auth: {
      ...base.auth,
      password: { ...base.auth.password, memory: 1_024, iterations: 1, ...overrides?.auth?.password },
    },
    clients: Object.fromEntries(
      Object.entries(base.clients).map(([name, { url, ...client }]) => [
        name,
        { ...client, ...(url !== undefined && { url: pooled(url) }) },
      ]),
    ),
    log: { ...base.log, requests: 'all' },
  }
}

/** Creates a caller. `expect` checks the status of every response. */
export function actor(
  url: string,
  own: Readonly<Record<string, string>> = {},
  expect: Expectation = () => {},
): Actor {
  const send = async (method: string, path: string, ask: Ask = {}): Promise<Answer> => {
    const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body))
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await request(`${url}${path}`, {
      method: method as Dispatcher.HttpMethod, // or one that the service must refuse
      headers: Object.fromEntries(new Headers({ ...FETCH_HEADERS, ...type, ...own, ...ask.headers })),
      ...(body === undefined ? {} : { body }),
    })
    const headers = headersOf(response.headers)
    const text = await response.body.text()
    expect({ method, path }, response.statusCode)
    const isJson = headers.get('content-type')?.includes('json') === true && text !== ''
    const parsed = isJson ? JSON.parse(text) : undefined
    if (response.statusCode >= 400 && parsed?.status === 'error') expectDetails(parsed)
    return { status: response.statusCode, headers, text, body: parsed }
  }
  return {
    headers: own,
    send,
    get: (path, ask) => send('GET', path, ask),
    post: (path, body = {}, ask = {}) => send('POST', path, { body, ...ask }),
  }
}

/** Headers that `fetch` sends. It is not used, because it takes three times the processor time of `request`. */
const FETCH_HEADERS = {
  accept: '*/*',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
}

function headersOf(received: IncomingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, value = []] of Object.entries(received))
    for (const one of [value].flat()) headers.append(name, one)
  return headers
}

async function signUp(url: string, name: string, expect: Expectation): Promise<User> {
  const email = `${name.toLowerCase()}-${secureRandom(4).toString('hex')}@example.com`
  const answer = await actor(url).post('/api/auth/sign-up/email', { name, email, password: PASSWORD })
  // A busy machine may need longer than a short `limits.timeout`.
  if (answer.status === 504) return signUp(url, name, expect)
  assert.equal(answer.status, 200, answer.text)
  const { token, user } = answer.body
  return { ...actor(url, { authorization: `Bearer ${token}` }, expect), email, token, id: user.id }
}

/** Path and query of the only link in a mail's text part, decoded as a mail reader does. */
export function linkIn(mail: string): string {
  const text = mail.replace(/=\r?\n/g, '').replaceAll('=3D', '=')
  const [link] = /http:\/\/localhost:\d+\/[^\s"<]+/.exec(text) ?? []
  assert.ok(link, `no link in:\n${text}`)
  return link.replace(/^http:\/\/localhost:\d+/, '')
}

/** Turns a mailed link into the address of the endpoint that an application's page calls with the link's token. */
export const endpointOf = (link: string): string =>
  link
    .replace(/confirm\/(verify|change)-email/, 'verify-email')
    .replace('confirm/delete-user', 'delete-user/callback')

/** Follows a mailed link as a browser does: opens the page, fills it in and presses its button. */
export async function confirm(
  actor: Actor,
  link: string,
  filled: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const page = await actor.get(link, { headers: BROWSER })
  assert.equal(page.status, 200, page.text)
  return pressButton(actor, link, page, filled)
}

/** Submits the form of an open page. */
export const pressButton = (
  actor: Actor,
  link: string,
  page: Answer,
  filled: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  actor.send('POST', link.split('?')[0] ?? '', {
    raw: formIn(page.text, filled),
    headers: { ...BROWSER, ...FORM },
  })

/** The form data of a page: hidden fields and `filled`. Uses the first form that has all fields of `filled`. */
export function formIn(page: string, filled: Readonly<Record<string, string>> = {}): string {
  const forms = page.match(/<form method="post">[\s\S]*?<\/form>/g) ?? []
  const form = forms.find((form) => Object.keys(filled).every((name) => form.includes(`name="${name}"`)))
  assert.ok(form, `no form for ${Object.keys(filled)} in:\n${page}`)
  const hidden = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(
    ([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')] as const,
  )
  return new URLSearchParams({ ...Object.fromEntries(hidden), ...filled }).toString()
}

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
export const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
