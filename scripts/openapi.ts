/** Writes docs/openapi.json, the document of a service with every optional feature, and no other configuration. With `--check`, writes nothing and fails if the file is stale. */
import { defaultConfig } from '#kernel/config/config.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { describeRoutesOf } from '../src/describe-routes.ts'
import { writeGenerated } from './generated.ts'

const { app } = await describeRoutesOf(defaultConfig({ auth: EVERY_FEATURE }))
await writeGenerated('docs/openapi.json', `${JSON.stringify(app.swagger(), null, 2)}\n`)
