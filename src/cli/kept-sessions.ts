import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { secureRandom } from '#kernel/random.ts'
import { environment } from './context.ts'

/** A session of the command line at a running service. */
export type KeptSession = {
  /** The service's address, which names it: `https://api.example.com`. */
  readonly service: string
  /** The address of its authentication surface. */
  readonly authUrl: string
  readonly token: string
}

/** Only its owner may read it: the tokens are as good as passwords. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** In the user's folder of settings, wherever the system has it. */
export function sessionsFile(): string {
  const { XDG_CONFIG_HOME, APPDATA, HOME } = environment()
  const folder = XDG_CONFIG_HOME || APPDATA || path.join(HOME || homedir(), '.config')
  return path.join(folder, 'gatehouse', 'sessions.json')
}

/** The last one that began is the first. */
export async function readKeptSessions(): Promise<readonly KeptSession[]> {
  const file = sessionsFile()
  try {
    const { sessions } = JSON.parse(await readFile(file, 'utf8'))
    if (Array.isArray(sessions) && sessions.every(isKeptSession)) return sessions
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new Error(`${file} was not written by gatehouse login: move it away, and sign in again.`)
}

const isKeptSession = (value: unknown): value is KeptSession =>
  (['service', 'authUrl', 'token'] as const).every((name) => typeof Object(value)[name] === 'string')

/** Keeps the session in the place of an older one at the same service. */
export async function keepSession(session: KeptSession): Promise<void> {
  const others = await otherSessions(session.service)
  await write([session, ...others])
}

export const forgetSession = async ({ service }: Pick<KeptSession, 'service'>): Promise<void> =>
  write(await otherSessions(service))

const otherSessions = async (service: string): Promise<readonly KeptSession[]> =>
  (await readKeptSessions()).filter((kept) => kept.service !== service)

/** A new file takes the place of the old one, whose mode may be another, and which a reader may have open. */
async function write(sessions: readonly KeptSession[]): Promise<void> {
  const file = sessionsFile()
  await mkdir(path.dirname(file), { recursive: true, mode: FOLDER_MODE })
  const fresh = `${file}.${secureRandom(6).toString('hex')}`
  await writeFile(fresh, `${JSON.stringify({ sessions }, null, 2)}\n`, { mode: FILE_MODE, flag: 'wx' })
  await rename(fresh, file)
}
