import path from 'node:path'
import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, PathId, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { pagination } from '../pagination.ts'
import { deleteBackup } from './backups.ts'
import { createDownloads } from './downloads.ts'
import { cancelJob, findBackupJob, recordOf, requestBackup, requestRestore } from './jobs/jobs.ts'
import { JOB_STATUSES, JOB_TYPES, listJobs } from './jobs/store.ts'
import type { BackupSources } from './sources.ts'

const JOB_TYPE = OneOf(JOB_TYPES, named('BackupJobType'))
const JOB_STATUS = OneOf(JOB_STATUSES, {
  ...named('BackupJobStatus'),
  description:
    'foreign: a complete backup of the installation from which this one was restored or copied; it can be downloaded, and is never removed',
})
const ClientName = Type.String({ minLength: 1, maxLength: 63, examples: ['default'] })

const CONFIRMATION = Type.Unsafe<string | boolean>({
  type: ['string', 'boolean'],
  maxLength: 63,
  description: 'client_name again, or true',
  examples: ['default'],
})

const Job = Type.Object(
  {
    id: Id,
    job_type: JOB_TYPE,
    status: JOB_STATUS,
    client_name: Type.String(),
    format: OneOf(['dump', 'archive'], {
      ...named('BackupFormat'),
      description:
        'dump: of the database of a client, by pg_dump; archive: of the whole embedded server, sealed',
    }),
    label: Nullable(Type.String()),
    location: Nullable(
      Type.String({ description: 'The file, or s3://bucket/key; it exists when status is completed' }),
    ),
    size_bytes: Nullable(Type.Integer()),
    progress_pct: Type.Integer({ minimum: 0, maximum: 100 }),
    progress_stage: Nullable(Type.String({ examples: ['dumping'] })),
    error_message: Nullable(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Nullable(Timestamp),
  },
  named('BackupJob'),
)
const Queued = successOf(
  Type.Object({ job_id: Id, client_name: Type.String(), status: JOB_STATUS }, named('QueuedBackupJob')),
)
const ById = Type.Object({ id: PathId })
const PAGES = pagination({ usual: 50, maximum: 500 })

const CLIENT_FAILURES = [
  'unknown_client',
  'unsupported_by_driver',
  'client_unavailable',
  'client_refused',
  'client_busy',
  'unsafe_client',
  'direct_url_missing',
  'direct_url_unusable',
  'statement_timeout',
  'backup_job_active',
  'backup_program_missing',
]

/** The file's name for a header: the operator may have chosen any with `gatehouse backup --output`. */
const plainName = (location: string): string => path.basename(location).replace(/[^A-Za-z0-9._-]/g, '_')

export function backupRoutes(app: App, kernel: Kernel, access: GatewayAccess, sources: BackupSources): void {
  jobRoutes(app, kernel, access)
  storedRoutes(app, access, sources)
}

/** Backups and restores that wait, run or have ended. */
function jobRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = { access: access.operator('backups') }
  app.route({
    method: 'GET',
    url: '/admin/backups/jobs',
    config,
    schema: {
      operationId: 'listBackupJobs',
      summary: 'List backups and restores, newest first',
      querystring: Type.Object({
        client_name: Type.Optional(ClientName),
        status: Type.Optional(JOB_STATUS),
        job_type: Type.Optional(JOB_TYPE),
        ...PAGES.query,
      }),
      response: { 200: successOf(Type.Object({ jobs: Type.Array(Job), total: Type.Integer() })) },
    },
    handler: async ({ query }) => {
      const { jobs, total } = await listJobs(kernel.db, query, PAGES.pageOf(query))
      return success(`Listed ${jobs.length} jobs`, { jobs: jobs.map(recordOf), total })
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/backups/jobs/:id',
    config: { ...config, failures: ['backup_not_found'] },
    schema: {
      operationId: 'getBackupJob',
      summary: 'A backup or restore, with its progress',
      params: ById,
      response: { 200: successOf(Job) },
    },
    handler: async ({ params }) => success('Job found', recordOf(await findBackupJob(kernel, params.id))),
  })
  app.route({
    method: 'POST',
    url: '/admin/backups/jobs/:id/cancel',
    config: { ...config, failures: ['backup_not_found', 'backup_job_ended'] },
    schema: {
      operationId: 'cancelBackupJob',
      summary: 'Cancel a backup or restore that waits or runs',
      params: ById,
      response: { 200: successOf(Job) },
    },
    handler: async (request) => {
      const job = await cancelJob(request.kernel, request.params.id)
      return success(job.status === 'cancelled' ? 'Job cancelled' : 'Job is being cancelled', recordOf(job))
    },
  })
}

/** Backups themselves: made, restored, downloaded and deleted. */
function storedRoutes(app: App, access: GatewayAccess, sources: BackupSources): void {
  const config = { access: access.operator('backups') }
  const downloads = createDownloads()
  app.route({
    method: 'POST',
    url: '/admin/backups',
    config: { ...config, failures: CLIENT_FAILURES },
    schema: {
      operationId: 'createBackup',
      summary: 'Back up a client; on the embedded server, the whole server',
      body: Type.Object({
        client_name: ClientName,
        label: Type.Optional(Nullable(Type.String({ maxLength: 200, examples: ['before the migration'] }))),
      }),
      response: { 202: Queued },
    },
    handler: async (request, reply) => {
      const { id, clientName } = await requestBackup(request.kernel, sources, request.body)
      reply.code(202)
      return success('Backup queued', { job_id: id, client_name: clientName, status: 'pending' as const })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/backups/:id/restore',
    config: {
      access: access.operator('backups', { isProven: true }),
      failures: [
        ...CLIENT_FAILURES,
        'backup_not_found',
        'backup_not_completed',
        'restore_not_confirmed',
        'restore_needs_command',
        'restore_refused',
      ],
    },
    schema: {
      operationId: 'restoreBackup',
      summary: 'Replace the data of a client by that of a backup',
      description:
        'The client, and every other client of its database, refuses writes until the restore has ended. Everything is replaced in one transaction, or nothing. An archive of the embedded server is restored with the service stopped: gatehouse restore FILE.',
      params: ById,
      body: Type.Object({
        client_name: ClientName,
        confirm: CONFIRMATION,
      }),
      response: { 202: Queued },
    },
    handler: async (request, reply) => {
      const { params, body } = request
      const { id, clientName } = await requestRestore(request.kernel, sources, params.id, body)
      reply.code(202)
      return success('Restore queued', { job_id: id, client_name: clientName, status: 'pending' as const })
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/backups/:id/download',
    config: {
      access: access.operator('backups', { isProven: true }),
      failures: [
        'backup_not_found',
        'backup_not_completed',
        'backup_file_missing',
        'backup_file_changed',
        'backup_store_unavailable',
        'too_many_downloads',
      ],
    },
    schema: {
      operationId: 'downloadBackup',
      summary: 'The file of a backup',
      description: 'A dump of pg_dump (custom format), or a sealed archive of the embedded server.',
      params: ById,
      response: {
        200: { content: { 'application/octet-stream': { schema: Type.String({ format: 'binary' }) } } },
      },
    },
    handler: async (request, reply) => {
      const { backup, content } = await downloads.open(request.kernel, request.params.id)
      reply.headers({
        'content-type': 'application/octet-stream',
        'content-length': backup.size,
        'content-disposition': `attachment; filename="${plainName(backup.location)}"`,
        // RFC 9530
        'repr-digest': `sha-256=:${Buffer.from(backup.sha256, 'hex').toString('base64')}:`,
      })
      // It holds no connection of a client, and may be larger than what a slow line takes in that time.
      return reply.sendLong(content, { isTimed: false })
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/backups/:id',
    config: { ...config, failures: ['backup_not_found', 'backup_in_use', 'backup_store_unavailable'] },
    schema: {
      operationId: 'deleteBackup',
      summary: 'Delete a backup with its file, or the record of a restore',
      description: 'The file of another installation, from which this one was restored or copied, stays.',
      params: ById,
      response: { 200: successOf(Type.Object({ id: Id })) },
    },
    handler: async (request) => {
      const { id } = request.params
      await deleteBackup(request.kernel, id)
      return success('Backup deleted', { id })
    },
  })
}
