import { actor, type TestService } from '#test/harness.ts'

/** The newest row of the audit log about an object. */
export async function lastAudit({ url, admin }: TestService, object: string) {
  const auditor = actor(url, { ...admin.headers, 'x-service-client': 'logging' })
  const { body } = await auditor.post('/gateway/fetch', {
    table_name: 'database_audit_log',
    columns: ['operation', 'object_type', 'status'],
    conditions: [{ eq_column: 'object_name', eq_value: object }],
    sort_by: { field: 'id', direction: 'desc' },
    limit: 1,
  })
  return body.data[0]
}
