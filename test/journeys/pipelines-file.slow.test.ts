import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { ADMIN_KEY, actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { createTemporaryHome, runProgram, spawnProgram, startProgram } from './program.ts'

const file = (...names: readonly string[]): string =>
  `pipelines:\n${names.map((name) => `  ${name}: { sink: { table_name: "\${TARGET}" } }\n`).join('')}`

for (const workers of [1, 2])
  test(`SIGHUP loads the pipelines file in ${workers === 1 ? 'the process' : 'all workers, also in those that start later'}; a bad file keeps the old one`, async (t) => {
    const home = await createTemporaryHome()
    t.after(home.remove)
    const write = (text: string) => writeFile(path.join(home.folder, 'pipelines.yaml'), text)
    await write(file('first'))
    const program = await startProgram(home.folder, {
      DATABASE_URL: await controlDatabase(),
      SERVICE_SECRET: TEST_SECRET,
      SERVICE_KEY_12: ADMIN_KEY,
      SERVICE_SERVER__WORKERS: String(workers),
      TARGET: 'archive',
    })
    t.after(() => program.end('SIGTERM'))
    // Each request has a connection of its own, so that all workers answer.
    const admin = actor(program.url, { apikey: ADMIN_KEY, connection: 'close' })
    const names = async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => admin.get('/pipelines/templates').catch(() => undefined)),
      )
      return [
        ...new Set(
          answers.map((answer) =>
            answer?.body.templates.map(
              ({ name, sink_table }: Record<string, string>) => `${name} ${sink_table}`,
            ),
          ),
        ),
      ].map(String)
    }
    const all = async (expected: string) => {
      const deadline = Date.now() + 60_000
      for (;;) {
        const found = [...new Set(await names())]
        if (found.length === 1 && found[0] === expected) return
        assert.ok(Date.now() < deadline, `${found} instead of ${expected}\n${program.output()}`)
        await sleep(50)
      }
    }
    const logged = async (event: string) => {
      while (!program.output().includes(`"event":"${event}"`)) await sleep(20)
    }
    await all('first archive')

    await write(file('first', 'second'))
    program.child.kill('SIGHUP')
    await all('first archive,second archive')

    await write('pipelines:\n  third: { sorce: {} }\n')
    program.child.kill('SIGHUP')
    await logged('pipelines_rejected')
    assert.match(
      program.output(),
      /pipelines\.yaml:2 pipelines\.third\.sorce: unknown field; did you mean source\?/,
    )
    await all('first archive,second archive')

    if (workers === 1) return
    const [pid] = await childrenOf(program.child.pid ?? 0)
    process.kill(pid ?? 0, 'SIGKILL')
    await logged('worker_lost')
    await sleep(2_500)
    await all('first archive,second archive')
  })

test('a pipelines file with problems stops the start, and config check names them', async (t) => {
  const home = await createTemporaryHome()
  t.after(home.remove)
  await writeFile(path.join(home.folder, 'own.yaml'), 'pipelines:\n  a:\n    sink: { tabel_name: x }\n')
  const env = { SERVICE_GATEWAY__PIPELINES_FILE: 'own.yaml' }
  const problem = 'own.yaml:3 pipelines.a.sink.tabel_name: unknown field; did you mean table_name?\n'
  const checked = await runProgram(home.folder, ['config', 'check', '--offline'], env)
  assert.deepEqual([checked.code, checked.stderr], [1, problem])
  const started = spawnProgram(home.folder, env)
  // At the exit, the last of its output may not have arrived.
  await once(started.child, 'close')
  assert.equal(started.child.exitCode, 1)
  assert.ok(started.errors().includes(problem.trim()), started.output())
})
