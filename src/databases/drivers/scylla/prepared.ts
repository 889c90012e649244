import { createRequire } from 'node:module'
import type { Client } from 'cassandra-driver'
import type { CqlType } from '#databases/drivers/scylla/types.ts'

export type Parameter = { readonly name: string; readonly type: CqlType }

/** A part of the library that its types leave out; its version is exact, and every test of the driver passes here. */
type PrepareHandler = {
  getPrepared(
    client: Client,
    loadBalancing: object,
    text: string,
    keyspace: string | undefined,
  ): Promise<{ readonly meta: { readonly columns: readonly Parameter[] } }>
}
const { getPrepared } = createRequire(import.meta.url)(
  'cassandra-driver/lib/prepare-handler.js',
) as PrepareHandler

/** The parameters of a text, with the types that the server gives them. It is asked once for each; running uses the same answer. */
export async function parametersOf(client: Client, text: string): Promise<readonly Parameter[]> {
  const { meta } = await getPrepared(client, balancing(client), text, client.keyspace)
  return meta.columns
}

/** Not in the library's types: the options that a client was made with. */
const balancing = (client: Client): object =>
  (client as unknown as { readonly options: { readonly policies: { readonly loadBalancing: object } } })
    .options.policies.loadBalancing
