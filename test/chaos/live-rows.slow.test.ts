import { after, test } from 'node:test'
import { planOf } from './plan.ts'
import { play } from './play.ts'
import { createWorld } from './world.ts'

const cleanups = new AsyncDisposableStack()
after(() => cleanups.disposeAsync())
const world = await createWorld({ after: (clean) => cleanups.defer(clean) })

/** The first and the last kill processes; 17 has five hundred pages. */
for (const seed of [0, 7, 1, 2, 3, 4, 5, 6, 17, 8])
  test(`every page shows the rows of a fetch, whatever breaks: seed ${seed}`, async () => {
    await play(world, planOf(seed, world.people))
  })
