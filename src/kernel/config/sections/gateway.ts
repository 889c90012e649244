import { flag, integer, list, section, text } from '../setting.ts'
import { clientNameForm } from './database.ts'

export const gateway = section('The data gateway.', {
  enforce_api_keys: flag('Whether data operations need an API key; a client can decide otherwise.', {
    default: true,
  }),
  force_camel_case_to_snake_case: flag('Whether column names in requests are rewritten, userId to user_id.', {
    default: false,
  }),
  max_rows: integer('Most rows of one answer.', { min: 1, max: 1_000_000 }, { default: 10_000 }),
  logging_client: text('Client that holds the log and audit tables.', { default: 'logging' }, clientNameForm),
  unsafe_clients: list(
    'Clients that may use a superuser or a role with access to the server’s files. Each start warns of them.',
    clientNameForm,
  ),
})
