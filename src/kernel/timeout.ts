/** The work's result. When it takes longer, that of `onTimeout`, which may throw; then it does not matter how the work ends. */
export async function withTimeout<T>(work: Promise<T>, milliseconds: number, onTimeout: () => T): Promise<T> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, milliseconds)
  try {
    return await Promise.race([work, late.then(onTimeout)])
  } finally {
    clearTimeout(timer)
  }
}
