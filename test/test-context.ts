import hooks, { type AsyncHook, AsyncLocalStorage, AsyncResource, type HookCallbacks } from 'node:async_hooks'

/** Runs a file's tests as a suite. `load` imports the file. */
export type DescribeFile = (file: string, load: () => Promise<unknown>) => Promise<void>

/**
 * node:test finds the running test by async hooks: it notes every promise and socket, and their destruction, which takes a
 * fifth of the processor time of requests and makes every await slow. An AsyncLocalStorage costs nothing, so node:test gets functions that
 * use one. It takes them when it is first loaded, so this must run before.
 */
export async function loadTestRunner(): Promise<DescribeFile> {
  const running = new AsyncLocalStorage<number>()
  /** Modules that wait for others of their graph are evaluated without the context of the import. */
  let fileSuite = 0
  let callbacks: HookCallbacks | undefined
  class TestResource extends AsyncResource {
    constructor(...[type, options]: ConstructorParameters<typeof AsyncResource>) {
      super(type, options)
      callbacks?.init?.(this.asyncId(), type, this.triggerAsyncId(), this)
    }
    override runInAsyncScope: AsyncResource['runInAsyncScope'] = (work, self, ...given) =>
      super.runInAsyncScope(() => running.run(this.asyncId(), () => Reflect.apply(work, self, given)))
  }
  const hook: AsyncHook = { enable: () => hook, disable: () => hook }
  const { describe } = await importWith({
    AsyncResource: TestResource,
    executionAsyncId: () => running.getStore() ?? fileSuite,
    createHook: (given: HookCallbacks) => {
      callbacks = given
      return hook
    },
  })
  return async (file, load) => {
    await describe(file, async () => {
      fileSuite = running.getStore() ?? 0
      await load()
    })
    fileSuite = 0
  }
}

async function importWith(
  replaced: Partial<typeof hooks>,
): Promise<Pick<typeof import('node:test'), 'describe'>> {
  const { AsyncResource, executionAsyncId, createHook } = hooks
  Object.assign(hooks, replaced)
  try {
    return (await import('node:test')).default
  } finally {
    Object.assign(hooks, { AsyncResource, executionAsyncId, createHook })
  }
}
