type OpenedOnce<T> = {
  get(): Promise<T>
  /** Undefined when nothing was opened yet. */
  current(): Promise<T> | undefined
}

/**
 * Opens at the first `get`. A failure is not kept: a process that may open no more files at that moment cannot read the module that it needs, and
 * would never use it.
 */
export function openedOnce<T>(open: () => Promise<T>): OpenedOnce<T> {
  let opened: Promise<T> | undefined
  return {
    get() {
      opened ??= open().catch((error: unknown) => {
        opened = undefined
        throw error
      })
      return opened
    },
    current: () => opened,
  }
}
