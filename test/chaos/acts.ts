import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '#test/embedded.ts'
import type { Page } from './page.ts'
import type { Act } from './plan.ts'
import { activates, isActive, isOpen, RIGHTS } from './rights.ts'
import { copy, inSession, psql } from './sessions.ts'
import { STRUCTURES, TABLES } from './statements.ts'
import { allAnswer, makeLive, type World } from './world.ts'

/** A lost race, and a service or a database that is gone, change nothing or something: both are what the fetch tells. */
export async function perform(world: World, act: Act, pages: readonly Page[]): Promise<void> {
  if (act.way === 'gateway') await world.ask('admin', act.method, act.path, act.body)
  if (act.way === 'session') await inSession(world, act.statements, act.waits)
  if (act.way === 'prepared') await prepared(world, act)
  if (act.way === 'copy') await copy(world, act)
  if (act.way === 'psql') await psql(world, act)
  if (act.way === 'structure') {
    await inSession(world, [act.there])
    await sleep(act.wait)
    await inSession(world, [act.back])
  }
  if (act.way === 'rights') await RIGHTS[act.of](world, pages)
}

let count = 0

async function prepared(world: World, { parts, wait }: Act & { way: 'prepared' }): Promise<void> {
  const names: string[] = []
  for (const { statements, ends } of parts) {
    // Its end stands in the name, for `settle`.
    const name = `chaos_${process.pid}_${++count}_${ends}`
    await inSession(world, ['begin', ...statements, `prepare transaction '${name}'`])
    // Also one that has failed: its session may have broken when it was prepared.
    names.unshift(name)
    await sleep(wait)
  }
  for (const name of names) await endPrepared(world, name)
}

/** Until it is ended: others wait for its locks, also across a crash. */
async function endPrepared(world: World, name: string): Promise<void> {
  const end = `${name.endsWith('commit') ? 'commit' : 'rollback'} prepared '${name}'`
  await eventually(async () => {
    if (await inSession(world, [end])) return true
    const left = await world.sql(`select from pg_prepared_xacts where gid = '${name}'`).catch(() => undefined)
    return left?.length === 0
  })
}

/** Everything that was begun is ended, and the structure is what it was. */
export async function settle(world: World): Promise<void> {
  // First, since services wait for their locks.
  const left = await world.sql('select gid from pg_prepared_xacts where database = current_database()')
  for (const { gid } of left as { gid: string }[]) await endPrepared(world, gid)
  await allAnswer(world)
  for (const { back, isThere } of STRUCTURES) {
    const [found] = await world.sql(`select ${isThere} as "isThere"`)
    for (let attempt = 0; found?.isThere === true && !(await inSession(world, [back])); attempt++)
      assert.ok(attempt < 20, `cannot be undone: ${back}`)
  }
  await eventually(() =>
    makeLive(world).then(
      () => true,
      () => false,
    ),
  )
  await isActive(world, true)
  await isOpen(world, true)
}

/** As at the beginning. */
export async function empty(world: World): Promise<void> {
  await settle(world)
  const { ada, bea, organizations } = world.people
  await world.sql(`truncate ${TABLES.join()}, team`)
  await world.sql(`insert into team values ('${ada}', 1), ('${bea}', 2)`)
  assert.ok(await activates(world, organizations[0]))
}
