import assert from 'node:assert/strict'
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { FAILURE_DETAILS, OPERATION_DETAILS } from '#gateway/failure-details.ts'

const compile = (members: Readonly<Record<string, TSchema>>) =>
  Compile(Type.Partial(Type.Object({ ...members, ...OPERATION_DETAILS })))

const compiled = new Map<string, ReturnType<typeof compile>>()

/** Asserts that the details of a failure of the gateway have the types that its client promises. */
export function expectDetails({ code, data }: { readonly code?: string; readonly data?: object }): void {
  if (code === undefined || data === undefined || !('details' in data)) return
  const members: Partial<Record<string, Readonly<Record<string, TSchema>>>> = FAILURE_DETAILS
  const validator = compiled.get(code) ?? compile(members[code] ?? {})
  compiled.set(code, validator)
  assert.ok(validator.Check(data.details), `details of ${code}: ${JSON.stringify(data.details)}`)
}
