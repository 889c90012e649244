import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MIB = 2 ** 20
const MODULE = new URL('./memory.ts', import.meta.url).href
const start = promisify(execFile)

/** Blocks of malloc, of which some stay, the last one too: malloc by itself returns what is free above all others. */
const SCRIPT = `
import { setTimeout as sleep } from 'node:timers/promises'
import { keepReturningFreed, returnMemory } from ${JSON.stringify(MODULE)}
if (process.argv[1] === 'returning') await keepReturningFreed()
let blocks = Array.from({ length: 2_000 }, () => Buffer.alloc(${MIB} / 16, 1))
const full = process.memoryUsage.rss()
blocks = blocks.filter((_, index) => index % 50 === 49)
await returnMemory()
await returnMemory()
const isReturned = () => process.memoryUsage.rss() < full - ${100 * MIB}
if (process.argv[1] === 'returning') while (!isReturned()) await sleep(50)
console.log(isReturned(), blocks.length)`

test('memory that was freed between blocks in use goes back to the system, and not by itself', {
  skip: isGlibc() ? false : 'only the malloc of glibc keeps it',
}, async () => {
  assert.deepEqual([await run('returning'), await run('not')], ['true 40\n', 'false 40\n'])
})

/** A process opens files until it may open no more, and looks at its memory meanwhile. */
const WITHOUT_FILES = `
import { openSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepReturningFreed } from ${JSON.stringify(MODULE)}
await keepReturningFreed()
try {
  for (;;) openSync('/dev/null')
} catch {}
await sleep(1_000)
console.log('goes on')`

test('a process that may open no more files goes on', { skip: process.platform !== 'linux' }, async () => {
  const { stdout } = await start('/bin/sh', [
    '-c',
    'ulimit -n 200; exec "$0" "$@"',
    ...[process.execPath, '--input-type=module', '-e', WITHOUT_FILES],
  ])
  assert.equal(stdout, 'goes on\n')
})

async function run(word: string): Promise<string> {
  const options = { env: { MALLOC_ARENA_MAX: '1' } }
  const { stdout } = await start(process.execPath, ['--input-type=module', '-e', SCRIPT, word], options)
  return stdout
}

function isGlibc(): boolean {
  const { header } = process.report.getReport() as unknown as { header: Readonly<Record<string, unknown>> }
  return header.glibcVersionRuntime !== undefined
}
