import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type { Client, policies, QueryOptions } from 'cassandra-driver'
import { type CellColumn, type Cells, type Page, pageOf } from '#databases/drivers/scylla/cells.ts'
import type { CqlType } from '#databases/drivers/scylla/types.ts'

/** Parts of the library that its types omit. Its version is pinned, and every test of the driver uses them. */
export type Parameter = { readonly name: string; readonly type: CqlType }

type Response = {
  readonly meta?: { readonly columns: readonly { readonly cell?: CellColumn }[]; readonly pageState?: Buffer }
  readonly rows?: readonly Cells[]
  readonly schemaChange?: object
}

/** One TCP connection to a node. */
export type Connection = {
  readonly netClient: Socket
  getInFlight(): number
  openAsync(): Promise<void>
  closeAsync(): Promise<void>
  changeKeyspace(keyspace: string): Promise<void>
  prepareOnceAsync(
    text: string,
    keyspace: string,
  ): Promise<{ readonly meta: { readonly columns: readonly Parameter[] } }>
  send(request: object, options: object | null): Promise<Response>
  /** Fails every waiting statement with the error. */
  clearAndInvokePending(error: Error): void
}

export type Host = {
  readonly address: string
  readonly pool: { readonly connections: readonly Connection[]; readonly protocolVersion: number }
  isUp(): boolean
  getInFlight(): number
  removeFromPool(connection: Connection): void
}

type Internals = {
  readonly options: { readonly policies: { readonly loadBalancing: object } }
  handleSchemaAgreementAndRefresh(connection: Connection, change: object): Promise<unknown>
}

const load = createRequire(import.meta.url)
const { getPrepared } = load('cassandra-driver/lib/prepare-handler.js') as {
  getPrepared(
    client: Client,
    loadBalancing: object,
    text: string,
    keyspace: string | undefined,
  ): Promise<{ readonly meta: { readonly columns: readonly Parameter[] } }>
}
const LibraryConnection = load('cassandra-driver/lib/connection.js') as new (
  address: string,
  protocolVersion: number,
  options: object,
) => Connection
const { QueryRequest, options: OPTIONS } = load('cassandra-driver/lib/requests.js') as {
  readonly QueryRequest: new (text: string, values: readonly unknown[], options: object) => object
  /** Asks a node for its options. It answers at once, even under load. */
  readonly options: object
}
const { DefaultExecutionOptions } = load('cassandra-driver/lib/execution-options.js') as {
  readonly DefaultExecutionOptions: { create(options: QueryOptions, client: Client): object }
}

const internals = (client: Client): Internals => client as unknown as Internals

export const hostsOf = (client: Client): readonly Host[] =>
  client.hosts.values() as unknown as readonly Host[]

export const isAnyConnected = (client: Client): boolean =>
  hostsOf(client).some(({ pool }) => pool.connections.length > 0)

/**
 * The policy without nodes that are not connected: the library would prepare a statement there and fail with an empty error.
 */
export function amongConnected<P extends policies.loadBalancing.LoadBalancingPolicy>(policy: P): P {
  const plan = policy.newQueryPlan.bind(policy)
  policy.newQueryPlan = (keyspace, options, callback) =>
    plan(keyspace, options, (error, hosts) => callback(error, hosts && connectedOf(hosts)))
  return policy
}

function* connectedOf<T>(hosts: Iterator<T>): Generator<T> {
  for (let next = hosts.next(); !next.done; next = hosts.next())
    if ((next.value as unknown as Host).pool.connections.length > 0) yield next.value
}

/** The parameters of a text with the server's types. The server is asked once for each text; running it uses the same answer. */
export async function parametersOf(client: Client, text: string): Promise<readonly Parameter[]> {
  const { loadBalancing } = internals(client).options.policies
  const { meta } = await getPrepared(client, loadBalancing, text, client.keyspace)
  return meta.columns
}

/** The same for a text that is not cached. */
export async function parametersOnce(
  connection: Connection,
  text: string,
  keyspace: string,
): Promise<readonly Parameter[]> {
  await connection.changeKeyspace(keyspace)
  return (await connection.prepareOnceAsync(text, keyspace)).meta.columns
}

/** The least busy connected node. */
export function nearestHost(client: Client): Host | undefined {
  const hosts = hostsOf(client).filter((host) => host.isUp() && host.pool.connections.length > 0)
  return hosts.toSorted((one, other) => one.getInFlight() - other.getInFlight())[0]
}

/** A separate connection to the node. */
export async function connectTo(client: Client, host: Host): Promise<Connection> {
  const connection = new LibraryConnection(host.address, host.pool.protocolVersion, internals(client).options)
  try {
    await connection.openAsync()
    return connection
  } catch (error) {
    await connection.closeAsync()
    throw error
  }
}

/** Runs a text on this connection, unprepared. A change of the structure has reached every node when it answers. */
export async function runOn(
  connection: Connection,
  client: Client,
  text: string,
  { values, ...options }: QueryOptions & { readonly values: readonly unknown[] },
): Promise<Page> {
  const how = DefaultExecutionOptions.create(options, client)
  const { meta, rows, schemaChange } = await connection.send(new QueryRequest(text, values, how), how)
  if (schemaChange !== undefined)
    await internals(client).handleSchemaAgreementAndRefresh(connection, schemaChange)
  return pageOf({ columns: meta?.columns, rows, pageState: meta?.pageState?.toString('hex') })
}

export const ask = (connection: Connection): Promise<unknown> => connection.send(OPTIONS, null)
