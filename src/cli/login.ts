import { setTimeout } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { keepSession, readKeptSessions, sessionsFile } from './kept-sessions.ts'
import { type RemoteAuth, serviceAddress, Unreachable, withRemoteAuth } from './remote-auth.ts'
import { terminal } from './terminal.ts'
import { WrongUsage } from './wrong-usage.ts'

/** As in `auth.device.clients`. */
const CLIENT_ID = 'gatehouse'
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'

export function loginCommand(): Command {
  return new Command('login')
    .description('sign in to a running service, by a code that is approved in a browser')
    .argument('<service>', 'its address, like https://api.example.com')
    .addOption(new Option('--auth-path <path>', 'setting auth.base_path of the service').default('/api/auth'))
    .action(async (typed: string, { authPath }: { authPath: string }) => {
      const service = serviceAddress(typed)
      const authUrl = authUrlAt(service, authPath)
      await withRemoteAuth(authUrl, async (auth) => {
        const codes = await requestCodes(auth, service)
        const { page, userCode } = codes
        terminal.warn(`Open ${page} in a browser in which you are signed in.`)
        terminal.warn(`Approve there if it shows the code ${userCode}.`)
        await begin(auth, { service, authUrl, token: await approvedToken(auth, codes) })
      })
    })
}

function authUrlAt(service: string, path: string): string {
  const url = URL.parse(path, service)
  if (url?.href !== `${service}${path}`) throw new WrongUsage(`${path} is not a path, like /api/auth.`)
  return url.href
}

type Codes = {
  readonly deviceCode: string
  readonly userCode: string
  readonly page: string
  /** Seconds. */
  readonly lifetime: number
  /** Seconds. */
  readonly interval: number
}

async function requestCodes({ ask }: RemoteAuth, service: string): Promise<Codes> {
  const { status, body } = await ask('POST', '/device/code', { body: { client_id: CLIENT_ID } })
  if (body.error === 'invalid_client')
    throw new Error(
      `${service} takes no gatehouse login: its operator has to set auth.device.clients.${CLIENT_ID}.name.`,
    )
  const { device_code: deviceCode, user_code: userCode, verification_uri_complete: page } = body
  const [lifetime, interval] = [Number(body.expires_in), Number(body.interval)]
  const isWhole = [deviceCode, userCode, page].every((text) => typeof text === 'string')
  if (status !== 200 || !isWhole || !(lifetime > 0 && interval > 0))
    throw new Error(`${service} answers ${status}: it is no Gatehouse, or has another auth.base_path.`)
  return {
    deviceCode: String(deviceCode),
    userCode: String(userCode),
    page: String(page),
    lifetime,
    interval,
  }
}

const SLOWER = 5_000
const SLOWEST = 60_000

/** Polls until the user has answered (RFC 8628, 3.5). While the service cannot be reached, each wait is twice the last one. */
async function approvedToken(
  { ask }: RemoteAuth,
  { deviceCode, lifetime, interval }: Codes,
): Promise<string> {
  const body = { grant_type: GRANT_TYPE, device_code: deviceCode, client_id: CLIENT_ID }
  let wait = interval * 1_000
  for (let waited = 0; waited < lifetime * 1_000; waited += wait) {
    await setTimeout(wait)
    const answer = await ask('POST', '/device/token', { body }).catch(unlessUnreachable)
    if (answer === undefined || answer.status === 429) wait = Math.min(2 * wait, SLOWEST)
    else if (typeof answer.body.access_token === 'string') return answer.body.access_token
    else if (answer.body.error === 'slow_down') wait += SLOWER
    else if (answer.body.error !== 'authorization_pending') throw new Error(refusalOf(answer.body))
  }
  throw new Error(REFUSALS.expired_token)
}

function unlessUnreachable(error: unknown): undefined {
  if (!(error instanceof Unreachable)) throw error
}

const REFUSALS = {
  access_denied: 'The sign-in was refused in the browser.',
  expired_token: 'The code has expired before it was approved: run gatehouse login again.',
} as const

const refusalOf = ({ error, error_description }: Readonly<Record<string, unknown>>): string =>
  error === 'access_denied' || error === 'expired_token'
    ? REFUSALS[error]
    : `The service refuses the sign-in: ${String(error_description ?? error)}.`

type Begun = { readonly service: string; readonly authUrl: string; readonly token: string }

/** Keeps the session. No session is left that nobody has the token of. */
async function begin({ ask }: RemoteAuth, session: Begun): Promise<void> {
  const signOut = (token: string) => ask('POST', '/sign-out', { token, body: {} }).catch(unlessUnreachable)
  const { token, service, authUrl } = session
  try {
    const before = (await readKeptSessions()).find((kept) => kept.service === service)
    await keepSession(session)
    if (before?.authUrl === authUrl) await signOut(before.token)
  } catch (error) {
    await signOut(token)
    throw error
  }
  const { body } = await ask('GET', '/get-session', { token })
  terminal.say(`Signed in to ${service} as ${String(Object(body.user).email)}.`)
  terminal.warn(`The session is in ${sessionsFile()}, which only you can read.`)
}
