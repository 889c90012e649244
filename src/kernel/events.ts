/** An operation of a caller on a client. */
export type ClientCall = { readonly client: string; readonly request_id: string | null }
/** `table` is `schema.table` in all events. */
type DataOperation = ClientCall & { readonly table: string; readonly affected_rows: number }
type TableChange = ClientCall & { readonly table: string }
type ColumnChange = TableChange & { readonly column: string }
type FunctionChange = ClientCall & { readonly function: string; readonly signature: string }
type PipelineRun = ClientCall & {
  readonly pipeline_run_id: string
  readonly pipeline_name: string | null
  readonly source_table: string
  readonly sink_client: string
  readonly sink_table: string
  readonly affected_rows: number
  readonly failed_rows: number
  readonly duration_ms: number
}
export type BackupJob = ClientCall & {
  readonly job_id: string
  readonly job_type: 'backup' | 'restore'
  readonly label: string | null
}
type UserEvent = { readonly user_id: string }
type OrganizationEvent = { readonly organization_id: string }

type Category = 'gateway' | 'pipeline' | 'schema' | 'backup' | 'auth'

type EventDefinition<Data> = {
  readonly category: Category
  readonly title: string
  readonly description: string
  /** Whether a webhook can be limited to one table. */
  readonly tableScope?: true
  readonly example: Data
}

/** Types the data of an event by its example. */
const event = <Data>(entry: EventDefinition<Data>): EventDefinition<Data> => entry

const CALL: ClientCall = { client: 'default', request_id: '0198c0de-0000-7000-8000-000000000001' }
const BACKUP: BackupJob = {
  ...CALL,
  job_id: '0198c0de-0000-7000-8000-000000000003',
  job_type: 'backup',
  label: 'nightly',
}
const USER: UserEvent = { user_id: '0198c0de-0000-7000-8000-000000000005' }
const ORGANIZATION: OrganizationEvent = { organization_id: '0198c0de-0000-7000-8000-000000000006' }

/**
 * The catalogue of events (gateway.md 12): every webhook that a service can send is one of these. An event that is not in it cannot be
 * emitted. Names, titles and examples are public: `GET /admin/webhooks/events` shows them.
 */
export const EVENTS = {
  gateway_fetch: event<DataOperation>({
    category: 'gateway',
    title: 'Rows fetched',
    description: 'POST /gateway/fetch has read rows, also as an operation of a transaction.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', affected_rows: 0 },
  }),
  gateway_data: event<DataOperation>({
    category: 'gateway',
    title: 'Rows read by value',
    description: 'GET /data has read rows.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', affected_rows: 0 },
  }),
  gateway_insert: event<DataOperation>({
    category: 'gateway',
    title: 'Rows inserted',
    description: 'An insert is committed, also as an operation of a transaction.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', affected_rows: 1 },
  }),
  gateway_update: event<DataOperation>({
    category: 'gateway',
    title: 'Rows updated',
    description: 'An update is committed, also as an operation of a transaction.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', affected_rows: 2 },
  }),
  gateway_delete: event<DataOperation>({
    category: 'gateway',
    title: 'Rows deleted',
    description: 'A delete is committed, also as an operation of a transaction.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', affected_rows: 2 },
  }),
  gateway_query: event<ClientCall & { readonly affected_rows: number }>({
    category: 'gateway',
    title: 'SQL executed',
    description: 'SQL of a caller has run. The text of the query is not part of the event.',
    example: { ...CALL, affected_rows: 3 },
  }),
  gateway_rpc: event<ClientCall & { readonly function: string; readonly affected_rows: number }>({
    category: 'gateway',
    title: 'Function called',
    description: 'A function of the client has returned. Its arguments are not part of the event.',
    example: { ...CALL, function: 'public.monthly_report', affected_rows: 0 },
  }),
  pipeline_completed: event<PipelineRun>({
    category: 'pipeline',
    title: 'Pipeline completed',
    description: 'A pipeline has run to its end. Dry runs emit nothing.',
    example: {
      ...CALL,
      pipeline_run_id: '0198c0de-0000-7000-8000-000000000002',
      pipeline_name: 'daily_totals',
      source_table: 'public.sales',
      sink_client: 'default',
      sink_table: 'public.daily_totals',
      affected_rows: 31,
      failed_rows: 0,
      duration_ms: 412,
    },
  }),
  schema_table_created: event<TableChange>({
    category: 'schema',
    title: 'Table created',
    description: 'POST /management/tables has created a table.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks' },
  }),
  schema_table_altered: event<TableChange & { readonly operations: readonly string[] }>({
    category: 'schema',
    title: 'Table altered',
    description:
      'A table, its name, or its row-level security has changed. Changes of single columns have their own events too.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', operations: ['add_column'] },
  }),
  schema_table_dropped: event<TableChange>({
    category: 'schema',
    title: 'Table dropped',
    description: 'A table was dropped.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks' },
  }),
  schema_column_added: event<ColumnChange>({
    category: 'schema',
    title: 'Column added',
    description: 'A table has a new column.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', column: 'rating' },
  }),
  schema_column_dropped: event<ColumnChange>({
    category: 'schema',
    title: 'Column dropped',
    description: 'A table has lost a column.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', column: 'rating' },
  }),
  schema_column_renamed: event<ColumnChange & { readonly new_name: string }>({
    category: 'schema',
    title: 'Column renamed',
    description: 'A column of a table has a new name.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', column: 'rating', new_name: 'stars' },
  }),
  schema_column_altered: event<ColumnChange & { readonly operation: string }>({
    category: 'schema',
    title: 'Column altered',
    description: 'The type, the default or the nullability of a column has changed.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', column: 'rating', operation: 'set_not_null' },
  }),
  schema_index_created: event<TableChange & { readonly index: string }>({
    category: 'schema',
    title: 'Index created',
    description: 'A table has a new index.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', index: 'tracks_title_idx' },
  }),
  schema_index_dropped: event<TableChange & { readonly index: string }>({
    category: 'schema',
    title: 'Index dropped',
    description: 'A table has lost an index.',
    tableScope: true,
    example: { ...CALL, table: 'public.tracks', index: 'tracks_title_idx' },
  }),
  schema_function_upserted: event<FunctionChange>({
    category: 'schema',
    title: 'Function created or replaced',
    description:
      'PUT /management/functions has created or replaced a function. Its text is not part of the event.',
    example: { ...CALL, function: 'public.monthly_report', signature: 'public.monthly_report(month date)' },
  }),
  schema_function_dropped: event<FunctionChange>({
    category: 'schema',
    title: 'Function dropped',
    description: 'A function was dropped.',
    example: { ...CALL, function: 'public.monthly_report', signature: 'public.monthly_report(month date)' },
  }),
  schema_extension_installed: event<ClientCall & { readonly extension: string; readonly schema: string }>({
    category: 'schema',
    title: 'Extension installed',
    description: 'The client has a new extension.',
    example: { ...CALL, extension: 'pg_trgm', schema: 'public' },
  }),
  backup_started: event<BackupJob>({
    category: 'backup',
    title: 'Backup started',
    description: 'A backup or a restore has begun; `job_type` says which.',
    example: BACKUP,
  }),
  backup_completed: event<BackupJob & { readonly size_bytes: number | null }>({
    category: 'backup',
    title: 'Backup completed',
    description: 'A backup or a restore is done.',
    example: { ...BACKUP, size_bytes: 1_048_576 },
  }),
  backup_failed: event<BackupJob & { readonly error_message: string }>({
    category: 'backup',
    title: 'Backup failed',
    description: 'A backup or a restore has failed, or was cancelled.',
    example: { ...BACKUP, error_message: 'No space is left on the disk of the backups.' },
  }),
  auth_user_created: event<UserEvent>({
    category: 'auth',
    title: 'User created',
    description:
      'A user was added: by sign-up, social or anonymous sign-in, an admin, the command line or an import.',
    example: USER,
  }),
  auth_user_signed_in: event<UserEvent & { readonly session_id: string }>({
    category: 'auth',
    title: 'User signed in',
    description: 'A user has a new session.',
    example: { ...USER, session_id: '0198c0de-0000-7000-8000-000000000004' },
  }),
  auth_user_upgraded: event<UserEvent>({
    category: 'auth',
    title: 'User upgraded',
    description: 'An anonymous user has an address or a way of signing in from now on, and keeps the id.',
    example: USER,
  }),
  auth_user_deleted: event<UserEvent>({
    category: 'auth',
    title: 'User deleted',
    description: 'A user was deleted, with all sessions.',
    example: USER,
  }),
  auth_user_banned: event<UserEvent>({
    category: 'auth',
    title: 'User banned',
    description: 'A user was banned, for a time or until the ban is lifted.',
    example: USER,
  }),
  auth_organization_created: event<OrganizationEvent & UserEvent>({
    category: 'auth',
    title: 'Organization created',
    description: 'There is a new organization; `user_id` is its owner.',
    example: { ...ORGANIZATION, ...USER },
  }),
  auth_organization_deleted: event<OrganizationEvent>({
    category: 'auth',
    title: 'Organization deleted',
    description: 'An organization was deleted, with its members and invitations.',
    example: ORGANIZATION,
  }),
  auth_member_added: event<OrganizationEvent & UserEvent>({
    category: 'auth',
    title: 'Member added',
    description: 'A user has joined an organization.',
    example: { ...ORGANIZATION, ...USER },
  }),
  auth_member_removed: event<OrganizationEvent & UserEvent>({
    category: 'auth',
    title: 'Member removed',
    description: 'A user has left an organization, was removed from it, or was deleted.',
    example: { ...ORGANIZATION, ...USER },
  }),
} as const satisfies Readonly<Record<`${Category}_${string}`, EventDefinition<unknown>>>

export type EventName = keyof typeof EVENTS
export type EventData = { readonly [Name in EventName]: (typeof EVENTS)[Name]['example'] }
