import assert from 'node:assert/strict'
import { answerTo } from '../answers.ts'
import { CONNECTIONS, PASSWORD } from '../loads.ts'
import { passwordSignIns, passwordSignUps } from '../loads-of-passwords.ts'
import { startPeer } from '../peer.ts'
import { inFolder, type PeerDefinition } from './peer-definition.ts'

const { file, isInstalled, install } = inFolder('better-auth')

/** In the client's database of the service, in tables of its own. */
export const betterAuth: PeerDefinition = {
  about: '1.7.7; scrypt by node:crypto; rate limits off; every session read from PostgreSQL; ten connections',
  isInstalled,
  install,
  async start({ service, after }) {
    const running = await startPeer(file('server.mjs'), [service.databaseUrl])
    after(running.stop)
    return running
  },
  loads: {
    async session({ url }) {
      const headers = { cookie: await signUpForCookie(url), origin: url }
      const load = { url, headers, requests: [{ path: '/api/auth/get-session' }], connections: CONNECTIONS }
      return {
        load,
        async check() {
          const { user } = (await answerTo(load, { path: '/api/auth/get-session' })) as {
            user: { email: string }
          }
          assert.equal(user.email, 'ada@example.com')
        },
      }
    },
    signIn: ({ url }) => passwordSignIns(url),
    signUp: async ({ url }) => passwordSignUps(url),
  },
}

async function signUpForCookie(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ name: 'ada', email: 'ada@example.com', password: PASSWORD }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
}
