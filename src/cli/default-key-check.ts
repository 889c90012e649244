import { readFileSync } from 'node:fs'
import { keyNamed } from '#gateway/keys/keys.ts'
import { isSecretOf, parseKey } from '#gateway/keys/secret.ts'
import type { Config } from '#kernel/config/config.ts'
import { defaultKeyFile } from '#kernel/data-folder.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Finding } from './finding.ts'
import { sentenceOf } from './terminal.ts'

/** Tries the key in the file of the built-in client `default`. No finding where there is no file: the next start issues a key. */
export async function defaultKeyFindings(config: Config, db: Db): Promise<readonly Finding[]> {
  const subject = 'default key'
  const file = defaultKeyFile(config)
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    return [{ subject, ok: false, says: sentenceOf(error) }]
  }
  const problem = await problemOf(text, db)
  return [
    problem === undefined
      ? { subject, ok: true, says: `${file} has a key of this database` }
      : {
          subject,
          ok: false,
          says: `${file} ${problem}. Remove the file, and the next start issues another key.`,
        },
  ]
}

async function problemOf(text: string, db: Db): Promise<string | undefined> {
  const presented = parseKey(text)
  if (presented === undefined) return 'has no API key'
  const found = await keyNamed({ db }, presented.publicId)
  if (found === undefined) return 'has a key that this database does not know: it belongs to another one'
  return isSecretOf(found, presented.secret) ? undefined : 'has a key whose secret has been rotated'
}
