import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createTemporaryHome, startProgram } from '../../../../test/journeys/program.ts'

const ADMIN_KEY = 'admin-key-of-the-runtimes-0123456789'

/** The service, for the cases. */
export type CaseContext = {
  readonly url: string
  /** The key of a page, which is public. */
  readonly key: string
  /** Sessions of two users, and their ids. */
  readonly ada: { readonly token: string; readonly id: string }
  readonly bea: { readonly token: string; readonly id: string }
  /** A table for one run of the cases, of which each user sees the own rows. */
  readonly table: string
}

/** As the service answers what is asked here. */
type Answer = {
  readonly data: { readonly api_key: string }
  readonly token: string
  readonly user: { readonly id: string }
}

export type RuntimeService = {
  /** For a run of the cases, with a table of its own. */
  context(runtime: string): Promise<CaseContext>
  stop(): Promise<void>
}

/** Starts the service as its users do. `origin`: of the page that a browser opens. */
export async function startRuntimeService(origin: string): Promise<RuntimeService> {
  const home = await createTemporaryHome()
  const settings = {
    auth: { trusted_origins: [origin] },
    clients: { default: { row_level_security: { enabled: true } } },
  }
  // JSON is YAML.
  await writeFile(path.join(home.folder, 'gatehouse.yaml'), JSON.stringify(settings))
  const program = await startProgram(home.folder, { SERVICE_KEY_12: ADMIN_KEY })
  const { url } = program
  const ask = async (method: string, where: string, apikey: string, body: object) => {
    const headers = { 'content-type': 'application/json', apikey, 'x-service-client': 'default' }
    const answer = await fetch(url + where, { method, headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${method} ${where}: ${await answer.text()}`)
    return answer.json() as Promise<Answer>
  }
  const operator = await home.key()
  const rights = ['gateway.read', 'gateway.write', 'gateway.delete']
  const { data } = await ask('POST', '/admin/api-keys', ADMIN_KEY, {
    name: 'pages',
    client_name: 'default',
    rights,
  })
  const signUp = async (name: string) => {
    const body = { name, email: `${name}@example.com`, password: 'correct horse battery' }
    const { token, user } = await ask('POST', '/api/auth/sign-up/email', '', body)
    return { token, id: user.id }
  }
  const [ada, bea] = [await signUp('ada'), await signUp('bea')]
  return {
    async context(runtime) {
      const table = `card_${runtime.toLowerCase()}`
      const columns = [
        { name: 'text', data_type: 'text', nullable: false, unique: true },
        { name: 'amount', data_type: 'numeric' },
        { name: 'large', data_type: 'bigint' },
        { name: 'user_id', data_type: 'uuid' },
      ]
      const where = `/management/tables/${table}`
      await ask('POST', '/management/tables', operator, { table_name: table, columns })
      await ask('PUT', `${where}/row-level-security`, operator, {
        enabled: true,
        policies: [{ preset: 'owner' }],
      })
      await ask('PUT', `${where}/realtime`, operator, { enabled: true })
      return { url, key: data.api_key, ada, bea, table }
    },
    async stop() {
      await program.end('SIGTERM')
      await home.remove()
    },
  }
}
