import { parsePipelines } from '#gateway/pipelines/pipelines-file.ts'
import { createPipelineRegistry } from '#gateway/pipelines/registry.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import type { TestService, User } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { createSecuredClient } from '#test/secured-client.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'

const PIPELINES = `
pipelines:
  pages-by-author:
    description: How much each author has written
    source: { table_name: books, columns: [author, pages] }
    transform: { group_by: author, aggregation_column: pages, column_aliases: { pages: total, count: books } }
    sink: { table_name: totals }
  archive:
    description: Old books to the reports, every night
    source: { table_name: books }
    sink: { client: reports, table_name: books }
`

/** What the pictures of the console show of pipelines and webhooks, as options of the service. */
export const picturedPipelines = {
  pipelines: createPipelineRegistry(
    parsePipelines(defaultConfig(), { name: 'pipelines.yaml', text: PIPELINES }, {}),
  ),
  config: { outbound: TO_LOOPBACK },
}

/** Notes of users and their organizations, with policies. `fill` gives some to a user. */
export async function picturedPolicies() {
  const { sql, settings, drop } = await createSecuredClient()
  await sql(`create table notes (id int primary key, text text, user_id uuid, organization_id uuid);
    insert into notes (id, text) values (1, 'Of nobody')`)
  return {
    ...{ settings, drop },
    async fill({ service: { kernel } }: TestService, root: User, userId: string) {
      await kernel.db.updateTable('user').set({ email: 'ada@example.com' }).where('id', '=', userId).execute()
      await sql(`insert into notes (id, text, user_id) values (2, 'Ask Charles about the mill', '${userId}'),
        (3, 'Note G: the numbers of Bernoulli', '${userId}'), (4, 'Return Somerville’s book', '${userId}')`)
      await root.send('PUT', '/management/tables/notes/row-level-security', {
        body: { enabled: true, policies: [{ preset: 'owner' }, { preset: 'organization' }] },
        headers: { 'x-service-session': '1', 'x-service-client': 'notes' },
      })
    },
  }
}

/** Webhooks, one of which fails, and the addresses of their screens. */
export async function picturedWebhooks({ service: { kernel, deliveries } }: TestService) {
  let status = 200
  const { url } = await startReceiver((response) => {
    response.writeHead(status).end(status === 200 ? '{"received": true}' : 'Service unavailable')
  })
  const { id } = await addWebhook(kernel, { url: `${url}/orders`, headers: { authorization: 'Bearer 1' } })
  const failing = await addWebhook(kernel, { url: `${url}/search`, routeKey: 'schema.*' })
  await addWebhook(kernel, { url: `${url}/people`, routeKey: 'auth.*', clientName: null })
  for (status of [200, 503, 200, 200]) {
    await addEvents(kernel, id, 2)
    await deliveries.drain()
  }
  status = 503
  await addEvents(kernel, failing.id)
  await deliveries.drain()
  const listed = kernel.db.selectFrom('webhookDelivery').select('id').where('webhookId', '=', id)
  const first = await listed.orderBy('id').executeTakeFirst()
  return {
    webhooks: '/webhooks',
    webhook: `/webhooks/${id}`,
    delivery: `/webhooks/${id}/deliveries/${first?.id}`,
  }
}
