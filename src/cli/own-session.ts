import { Command } from 'commander'
import { forgetSession, type KeptSession, readKeptSessions, sessionsFile } from './kept-sessions.ts'
import { serviceAddress, withRemoteAuth } from './remote-auth.ts'
import { terminal } from './terminal.ts'

const DEFAULT = 'its address; default: the one of the last gatehouse login'

export function logoutCommand(): Command {
  return new Command('logout')
    .description('end the session at a running service, and forget it')
    .argument('[service]', DEFAULT)
    .action(async (typed: string | undefined) => {
      const kept = await keptSession(typed)
      const { service, authUrl, token } = kept
      await withRemoteAuth(authUrl, async ({ ask }) => {
        const { status } = await ask('POST', '/sign-out', { token, body: {} })
        // A session that has ended by itself is signed out, too.
        if (status !== 200 && status !== 401)
          throw new Error(`${service} answers ${status}; the session stays in ${sessionsFile()}.`)
      })
      await forgetSession(kept)
      terminal.say(`Signed out of ${service}.`)
    })
}

export function whoamiCommand(): Command {
  return new Command('whoami')
    .description('show the user of the session at a running service')
    .argument('[service]', DEFAULT)
    .option('--json', 'as JSON')
    .action(async (typed: string | undefined, { json }: { json?: boolean }) => {
      const kept = await keptSession(typed)
      const { service, authUrl, token } = kept
      const { status, body } = await withRemoteAuth(authUrl, ({ ask }) =>
        ask('GET', '/get-session', { token }),
      )
      if (status === 401) {
        await forgetSession(kept)
        throw new Error(`The session at ${service} has ended: run gatehouse login ${service}`)
      }
      if (status !== 200) throw new Error(`${service} answers ${status}: ${String(body.message)}.`)
      const { id, email, name, role } = Object(body.user)
      const { expiresAt } = Object(body.session)
      const shown = { service, user: { id, email, name, role }, session: { expiresAt } }
      terminal.say(
        json === true
          ? JSON.stringify(shown)
          : `${email} at ${service}, with the role ${role}. The session ends at ${expiresAt}, or later if it is used.`,
      )
    })
}

async function keptSession(typed: string | undefined): Promise<KeptSession> {
  const service = typed && serviceAddress(typed)
  const sessions = await readKeptSessions()
  const found = service ? sessions.find((kept) => kept.service === service) : sessions[0]
  if (found === undefined)
    throw new Error(`There is no session${service ? ` at ${service}` : ''}: run gatehouse login SERVICE.`)
  return found
}
