import { hostPatternForm } from '../addresses.ts'
import { duration, flag, integer, list, section, size, text } from '../setting.ts'
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
  cache: section('Answers to reads that are given again without asking the database.', {
    ttl: duration(
      'How long an answer is given again; 0 switches it off. Writes through the gateway end it at once.',
      ['0s', '0s', '1d'],
    ),
    max_size: size('Memory of one process for such answers.', ['64MiB', '1MiB', '16GiB']),
  }),
  custom_supabase: section('The client whose Supabase project and key each request brings along.', {
    allowed_hosts: list(
      'Hosts that a request may name: one by one, or *.example.com for every label before it.',
      hostPatternForm,
      ['*.supabase.co'],
    ),
  }),
  unsafe_clients: list(
    'Clients that may use a superuser, or a role with access to the server’s files, REPLICATION, or CREATEROLE below PostgreSQL 16. Each start warns of them.',
    clientNameForm,
  ),
})
