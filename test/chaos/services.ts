import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { provision } from '#kernel/db/provision.ts'
import { type CrashableServer, startCrashableServer } from '#test/crashable-server.ts'
import { withClient } from '#test/database.ts'
import { type Cleanup, eventually } from '#test/embedded.ts'
import { freePort } from '#test/free-port.ts'
import { ADMIN_KEY, TEST_SECRET } from '#test/harness.ts'
import { type DatabaseProxy, startProxy } from '#test/hostile/proxy.ts'
import { createTemporaryHome, type Env, type Program, startProgram } from '#test/journeys/program.ts'
import { isAlive } from '#test/processes.ts'

/** A service in a process that can be killed. Its client `app` has row-level security. */
export type RunningService = {
  readonly url: string
  /** Between it and the database. */
  readonly proxy: DatabaseProxy
  /** Ends the process and starts another one on the same port. */
  replace(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Kills one of its workers, if it has any. The service replaces it. */
  killWorker(which: number): Promise<void>
  log(): string
}

const ROLES = { anonymous_role: 'stranger', signed_in_role: 'member' }
const CONTROL = { name: 'control', password: 'control' }
/** Of `prepared` writers, and so that a session of any run finds a place. */
const SETTINGS = { max_prepared_transactions: '100', max_connections: '300', synchronous_commit: 'on' }

/** A server of PostgreSQL with the roles of `startService`. */
export async function startServer(t: Cleanup): Promise<CrashableServer> {
  const server = await startCrashableServer(t, 'select 1', SETTINGS)
  const databases = [{ name: CONTROL.name, owner: CONTROL.name }]
  await provision(server.superuserUrl, { roles: [CONTROL], databases })
  await withClient(server.superuserUrl, (one) =>
    one.query(`alter role control createdb createrole; create role stranger nologin; create role member nologin;
      grant stranger, member to app`),
  )
  return server
}

const workersOf = ({ child }: Program) => childrenOf(child.pid ?? 0)

export async function startService(
  t: Cleanup,
  { url, superuserUrl }: CrashableServer,
  more: Env = {},
): Promise<RunningService> {
  const control = Object.assign(new URL(superuserUrl), {
    username: CONTROL.name,
    password: CONTROL.password,
    pathname: CONTROL.name,
  })
  const home = await createTemporaryHome()
  const proxy = await startProxy(control.href)
  const port = await freePort()
  const through = (target: string) => Object.assign(new URL(target), { port: new URL(proxy.url).port }).href
  const env = {
    DATABASE_URL: proxy.url,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_SERVER__PORT: String(port),
    SERVICE_AUTH__PASSWORD__MEMORY: '1024',
    SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
    SERVICE_CLIENTS__APP__URL: through(url),
    SERVICE_CLIENTS__APP__STATEMENT_TIMEOUT: '5s',
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ENABLED: 'true',
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ANONYMOUS_ROLE: ROLES.anonymous_role,
    SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__SIGNED_IN_ROLE: ROLES.signed_in_role,
    // So that a token of one service counts in the other.
    SERVICE_SERVER__PUBLIC_URL: 'http://localhost:1',
    SERVICE_AUTH__JWT__EXPIRES_IN: '1m',
    SERVICE_OUTBOUND__ALLOW_HTTP: 'true',
    SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
    // Of a crowd.
    SERVICE_LIMITS__STREAMS_PER_ADDRESS: '2000',
    ...more,
  }
  let program: Program = await startProgram(home.folder, env)
  t.after(async () => {
    await program.end('SIGKILL')
    await proxy.close()
    await home.remove()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    proxy,
    async replace(signal) {
      const workers = await workersOf(program)
      await program.end(signal)
      // They have its port as long as they live.
      await eventually(() => !workers.some(isAlive))
      program = await startProgram(home.folder, env)
    },
    async killWorker(which) {
      const workers = await workersOf(program)
      const pid = workers[which % workers.length]
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    },
    log: () => program.output(),
  }
}
