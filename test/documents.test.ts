import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { loadModule, parseSync } from 'libpg-query'
import { parsePipelines } from '#gateway/pipelines/pipelines-file.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { complaints } from './configuration.ts'
import { blocksOf, pages, ROOT, textOf } from './journeys/pages.ts'

/** All files and folders of the repository. Folders end with a slash. */
const FILES: readonly string[] = readdirSync(ROOT, { withFileTypes: true })
  .filter(({ name }) => !['.git', 'app', 'data', 'node_modules'].includes(name))
  .flatMap((entry) => [
    named(entry.name, entry.isDirectory()),
    ...(entry.isDirectory() ? filesIn(entry.name) : []),
  ])

function filesIn(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true }).map((entry) =>
    named(path.relative(ROOT, path.join(entry.parentPath, entry.name)), entry.isDirectory()),
  )
}

function named(name: string, isFolder: boolean): string {
  return isFolder ? `${name}/` : name
}

/** Files that the reader or the service creates. */
const ELSEWHERE =
  /^(?:dist\/|(?:gatehouse|pipelines)\.yaml|sessions\.json|export\.sql|roles\.sql|data\/.*|postgres\/lock|openapi\.json)$/

const proseOf = (page: string): string => textOf(page).replace(/^```[\s\S]*?^```$/gm, '')

test('every file and folder that a document or a picture names is in the repository', () => {
  const written = pages().map((page) => ({
    page,
    names: proseOf(page).matchAll(
      /`((?:[\w.-]+\/)*[\w.-]+(?:\/|\.(?:ts|mjs|sql|md|yaml|json|sh|mmd|svg)))`/g,
    ),
  }))
  const drawn = FILES.filter((file) => file.endsWith('.mmd')).map((page) => ({
    page,
    names: textOf(page)
      .replaceAll('<br/>', ' ')
      .matchAll(/([\w.-]+(?:\/(?=[ :"]|$)|\.ts))/gm),
  }))
  const missing = [...written, ...drawn].flatMap(({ page, names }) =>
    [...names]
      .map(([, name = '']) => name)
      .filter((name) => !ELSEWHERE.test(name))
      .filter((name) => !FILES.some((file) => file === name || file.endsWith(`/${name}`)))
      .map((name) => `${page}: ${name}`),
  )
  assert.deepEqual(missing, [])
})

test('every link in a document has an existing target', () => {
  const broken = pages().flatMap((page) =>
    [...proseOf(page).matchAll(/(?:\]\(|(?:src|srcset)=")([^)"\s]+)[)"]/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !leads(page, target))
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

function leads(page: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const found = file === '' ? page : path.posix.join(path.posix.dirname(page), file)
  if (!FILES.includes(found) && !FILES.includes(`${found.replace(/\/$/, '')}/`)) return false
  return anchor === undefined || anchorsOf(found).includes(anchor)
}

/** Anchors of headings, as GitHub generates them. */
const anchorsOf = (page: string): readonly string[] =>
  [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

/** Values for `${NAME}` in examples. */
const VALUES = {
  SUPABASE_URL: 'https://:key@project.supabase.co',
  SUPABASE_KEY: 'key',
  CASSANDRA_URL: 'scylladb://user:password@node1,node2:9042/keyspace',
  PASSWORD: 'x',
  APP_PASSWORD: 'x',
  APP_SQL_PASSWORD: 'x',
  AUDIT_PASSWORD: 'x',
  REPORTS_PASSWORD: 'x',
  BACKUPS_SECRET_KEY: 'x',
  HOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

test('every example of configuration, SQL and JSON is valid', async () => {
  await loadModule()
  for (const block of pages().flatMap(blocksOf)) {
    const where = `${block.page}:${block.line}`
    const [, heredoc] = /gatehouse\.yaml <<'END'\n([\s\S]*?)^END$/m.exec(block.text) ?? []
    const yaml = block.language === 'yaml' ? block.text : heredoc
    if (yaml?.startsWith('pipelines:') === true)
      parsePipelines(defaultConfig(), { name: where, text: yaml }, { LEAST_AMOUNT: '1' })
    else if (yaml !== undefined) assert.deepEqual(complaints({ yaml, env: VALUES }), [], where)
    if (block.language === 'sql') assert.doesNotThrow(() => parseSync(block.text), where)
    if (block.language === 'json') assert.doesNotThrow(() => JSON.parse(block.text), where)
    assert.notEqual(block.language, '', `${where} has no language`)
  }
})

test('comments for blocks precede a block of commands', () => {
  const misplaced = pages().flatMap((page) =>
    [...textOf(page).matchAll(/<!-- (\w+): .*-->\n(?=([^\n]*))/g)]
      .filter(
        ([, name = '', next = '']) => !/^(?:needs|answers)$/.test(name) || !/^(?:<!-- |```sh$)/.test(next),
      )
      .map(([comment]) => `${page}: ${comment}`),
  )
  assert.deepEqual(misplaced, [])
})

/** A message of the Linux loader. */
const FOREIGN_MESSAGE = 'error while loading shared libraries'

test('every message under "Troubleshooting" is in the source code', () => {
  const [, table = ''] = textOf('docs/operations.md').split('## Troubleshooting')
  const source = FILES.filter((file) => /^(?:src|bin|scripts)\/.*(?<!\.test)\.m?[jt]s$/.test(file))
    .map(textOf)
    .join(' ')
    // A sentence may consist of several literals.
    .replace(/['`]\s*\+\s*['`]|\s+/g, (found) => (found.trim() === '' ? ' ' : ''))
  const messages = [...table.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]* [^`]*)`/g)].map(([, message = '']) => longestWording(message)),
  )
  const gone = messages.filter((wording) => wording !== FOREIGN_MESSAGE && !source.includes(wording))
  assert.ok(messages.length > 20)
  assert.deepEqual(gone, [])
})

/** The longest part of a message without names, numbers and placeholders. */
const longestWording = (message: string): string =>
  [...message.matchAll(/\b[a-z'’]+(?: [a-z'’]+)*/g)]
    .map(([words]) => words)
    .reduce((longest, words) => (words.length > longest.length ? words : longest), '')
