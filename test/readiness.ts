import type { Actor, Answer } from './harness.ts'

/** The answer of `/health/ready`, asked again when a check was late: one that a busy machine does not answer within two seconds counts as failed. */
export async function readiness(by: Pick<Actor, 'get'>): Promise<Answer> {
  for (;;) {
    const answer = await by.get('/health/ready')
    const problems: readonly string[] = answer.body.problems ?? []
    if (!problems.some((problem) => problem.startsWith('The control database cannot be reached')))
      return answer
  }
}
