import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'

type Capacity = { readonly maxConnections: number; readonly maxWaiting: number }

/** The gateway's driver inside the benchmark's process, with the defaults of a client. */
export const openGatewayDriver = (url: string, capacity: Capacity): PostgresDriver =>
  createPostgresDriver({
    url,
    ...capacity,
    sqlConnections: 4,
    connectTimeout: 5_000,
    statementTimeout: 30_000,
    idleTimeout: 30_000,
    applicationName: 'bench',
    maxRows: 10_000,
    answerBytes: 33_554_432,
    // On the embedded server, peers log in as its superuser.
    allowServerRights: true,
  })
