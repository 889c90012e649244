import path from 'node:path'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { TYPED_TABLES } from '#test/typed-tables.ts'
import { createTypeScriptFolder } from '#test/typescript-folder.ts'

const t = await testService()
const [ofSupabase, ofKysely] = [await createTypeScriptFolder(), await createTypeScriptFolder()]
const programs = path.join(import.meta.dirname, 'generated-types')
before(() => withClient(t.clientUrl, (client) => client.query(TYPED_TABLES)))

const typesOf = async (shape: string) =>
  (await (await t.key(['management.read', 'management.functions.read'])).get(`/schema/types?shape=${shape}`))
    .text

test('supabase-js infers rows, relations and functions from the shape supabase, and refuses what a table does not take', async () => {
  await ofSupabase.write('database.ts', await typesOf('supabase'))
  await ofSupabase.copy(path.join(programs, 'supabase.ts'))
  await ofSupabase.compile()
})

test('Kysely infers from the shape kysely what its queries answer', async () => {
  await ofKysely.write('database.ts', await typesOf('kysely'))
  await ofKysely.copy(path.join(programs, 'kysely.ts'))
  await ofKysely.compile()
  await ofKysely.run('kysely.ts', t.clientUrl)
})
