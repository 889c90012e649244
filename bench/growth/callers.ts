import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HEADER } from '#kernel/http/header-names.ts'
import { withClient } from '#test/database.ts'
import { signUp } from '../loads.ts'
import { startPeer } from '../peer.ts'
import type { Bench } from '../scenario.ts'
import { SIGNED_UP, tokenOf } from './fill.ts'
import type { Headers } from './kinds.ts'

/** Headers of those who ask. */
export type Callers = {
  readonly admin: Headers
  /** Of the organization. */
  readonly owner: Headers
  readonly operator: Headers
}

export const JSON_BODY = { 'content-type': 'application/json' }
export const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

export async function openCallers({ service }: Bench): Promise<Callers> {
  const { url, adminKey, controlUrl } = service
  const admin = bearer(await signUp(url, SIGNED_UP))
  await withClient(controlUrl, (client) => client.query(`update service."user" set role = 'admin'`))
  const operator = { [HEADER.adminKey]: adminKey, [HEADER.client]: 'default' }
  return { admin, owner: bearer(tokenOf(1)), operator }
}

/** The first webhook, which each service of the benchmarks has for another table. Those that are added are copies of it. */
export const firstWebhook = async (controlUrl: string): Promise<string> =>
  (await idsOf(controlUrl, 'select id from service.webhook order by created_at limit 1'))[0] ?? ''

/** A webhook for the inserts into a table, with its receiver. Returns the function that waits until everything is delivered. */
export async function addDeliveredWebhook(
  { service, after }: Bench,
  headers: Headers,
  table: string,
): Promise<() => Promise<void>> {
  const receiver = await startPeer(path.join(import.meta.dirname, '../peers/by-hand/webhook-receiver.ts'))
  after(receiver.stop)
  const asked = { route_key: 'gateway_insert', table_name: `public.${table}`, url: receiver.url }
  const answer = await fetch(`${service.url}/admin/webhooks`, {
    method: 'POST',
    headers: { ...headers, ...JSON_BODY },
    body: JSON.stringify({ ...asked, client_name: 'default' }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  const { data } = (await answer.json()) as { data: { id: string } } // the response schema of the route
  const waiting = `select id from service.webhook_delivery where webhook_id = '${data.id}' and next_attempt_at is not null
    order by next_attempt_at limit 1`
  return async () => {
    while ((await idsOf(service.controlUrl, waiting)).length > 0) await sleep(20)
  }
}

const idsOf = (url: string, query: string): Promise<readonly string[]> =>
  withClient(url, async (client) => (await client.query<{ id: string }>(query)).rows.map(({ id }) => id))
