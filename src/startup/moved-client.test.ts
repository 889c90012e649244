import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertProtected } from '#databases/clients/protection.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { connectOnce } from '#kernel/db/connect.ts'
import { controlDatabase } from '#test/harness.ts'
import { expectDecided } from './moved-client.ts'

test('an address of its own does not open a client whose row-level security was switched on: the setting has to decide', async () => {
  const controlUrl = await controlDatabase()
  const url = 'postgres://app:secret@db.example.com/app'
  const start = (client: object) => expectDecided(controlUrl, defaultConfig({ clients: { default: client } }))
  await start({ url })
  const control = connectOnce(controlUrl)
  await insertProtected(control.db, 'default', new Date())
  await control.close()
  await assert.rejects(start({ url }), /clients\.default\.row_level_security\.enabled: true, or false/)
  await start({})
  for (const enabled of [true, false]) await start({ url, row_level_security: { enabled } })
})
