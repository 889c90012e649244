/**
 * Writes docs/openapi.json, the document of a service without configuration, which is started temporarily on an embedded server. With
 * `--check`, writes nothing and fails if the file is stale.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { defaultConfig } from '#kernel/config/config.ts'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { startService } from '../src/app.ts'
import { writeGenerated } from './generated.ts'

async function generate(): Promise<void> {
  const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-openapi-'))
  const server = await startEmbedded({
    dir: path.join(dir, 'postgres'),
    password: 'generator',
    settings: { fsync: 'off' },
  })
  try {
    await migrate(server.superuserUrl)
    await writeGenerated(
      'docs/openapi.json',
      `${JSON.stringify(await documentOf(server.superuserUrl), null, 2)}\n`,
    )
  } finally {
    await server.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

async function documentOf(controlUrl: string): Promise<object> {
  const service = await startService({
    config: defaultConfig(),
    databases: { controlUrl, builtIn: {}, logging: undefined },
    secrets: createSecrets('generator', secureRandom),
    adminKey: 'generator',
    log: createLog({ level: 'error', format: 'json' }),
  })
  try {
    return service.app.swagger()
  } finally {
    await service.stop()
  }
}

await generate()
