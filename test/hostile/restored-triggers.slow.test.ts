import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { actor } from '#test/harness.ts'
import { createTemporaryHome, runProgram, startProgram } from '../journeys/program.ts'

/** Triggers that a caller with SQL access can leave in the database of a client. */
const TRAP = [
  'drop table if exists service_idempotency',
  'create table service_idempotency (key text primary key)',
  'create table public.ran_as (role text)',
  `create function trap() returns trigger language plpgsql as 'begin insert into public.ran_as values (current_user); return null; end'`,
  'create trigger trap before delete or truncate on service_idempotency execute function trap()',
  'create view keys as select key from service_idempotency',
  'alter database gatehouse_default set default_transaction_read_only = on',
]

test('a restore of the embedded server runs no code of a client, nor do the settings of its database prevent it', {
  timeout: 110_000,
}, async (t) => {
  const home = await createTemporaryHome()
  t.after(home.remove)
  const program = await startProgram(home.folder)
  t.after(() => program.end('SIGTERM'))
  const headers = { apikey: await home.key(), 'x-service-client': 'default' }
  const sql = async (url: string, query: string) => {
    const answer = await actor(url, headers).post('/query/sql', { driver: 'postgresql', query })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  for (const statement of TRAP) await sql(program.url, statement)
  const made = await runProgram(home.folder, ['backup', '--output', 'all.gatehouse'])
  assert.equal(made.code, 0, made.stderr)
  await program.end('SIGTERM')

  // The state that a killed restore leaves.
  await mkdir(path.join(home.folder, 'restored/postgres/restore-killed/data'), { recursive: true })
  const there = { SERVICE_SERVER__DATA_DIR: 'restored' }
  const restored = await runProgram(
    home.folder,
    ['restore', 'all.gatehouse', '--secret-file', 'data/secret'],
    there,
  )
  assert.equal(restored.code, 0, restored.stderr)
  assert.equal(existsSync(path.join(home.folder, 'restored/postgres/restore-killed')), false)
  const again = await startProgram(home.folder, there)
  t.after(() => again.end('SIGTERM'))
  assert.deepEqual(await sql(again.url, 'select role from public.ran_as'), [])
  assert.deepEqual(await sql(again.url, `select to_regclass('public.service_idempotency') as table`), [
    { table: null },
  ])
})
