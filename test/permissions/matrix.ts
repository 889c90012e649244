import assert from 'node:assert/strict'
import type { Answer, TestService } from '#test/harness.ts'

/** The expected status of an answer, and its code if it is an error. */
export type Expected = 200 | readonly [status: number, code: string]

/** Expected answers of a route to each role. A role without an entry does not compile. */
export type Row<Role extends string, Request> = {
  /** The parameters of the request; `body` for POST, `query` for GET. */
  readonly request: Request
  readonly expected: Readonly<Record<Role, Expected>>
}

/** Rows by route: `POST /organization/create`. */
export type Matrix<Role extends string, Request> = Readonly<Record<string, Row<Role, Request>>>

/** Runs every cell, in parallel for the roles of a route. `ask` makes the caller and all that the request names. */
export async function expectMatrix<Role extends string, Request>(
  matrix: Matrix<Role, Request>,
  ask: (
    role: Role,
    route: { readonly method: string; readonly path: string },
    request: Request,
  ) => Promise<Answer>,
): Promise<void> {
  const wrong: string[] = []
  for (const [route, { request, expected }] of Object.entries(matrix)) {
    const [method = '', path = ''] = route.split(' ')
    const cells = Object.entries(expected) as [Role, Expected][] // the keys of a record of roles
    const check = async ([role, expectation]: [Role, Expected]) => {
      const { status, body, text } = await ask(role, { method, path }, request)
      const found = status === 200 ? 200 : [status, body?.code]
      if (JSON.stringify(found) !== JSON.stringify(expectation))
        wrong.push(`${route} as ${role}: expected ${expectation}, got ${status} ${text}`)
    }
    await Promise.all(cells.map(check))
  }
  assert.deepEqual(wrong, [])
}

/** Asserts that the matrix has exactly the routes of the surface whose paths begin so. */
export function expectEveryRoute(t: TestService, prefix: string, matrix: Matrix<string, unknown>): void {
  const { base_path } = t.config.auth
  const routes = t.service.book
    .entries()
    .filter(({ path }) => path.startsWith(`${base_path}${prefix}`))
    .map(({ method, path }) => `${method} ${path.slice(base_path.length)}`)
  assert.deepEqual(Object.keys(matrix).toSorted(), routes.toSorted())
}
