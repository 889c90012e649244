import { type TSchema, Type } from 'typebox'

/** The success envelope of the gateway (gateway.md 1). */
export const success = <T>(message: string, data: T) => ({ status: 'success' as const, message, data })

export const successOf = <T extends TSchema>(data: T) =>
  Type.Object({ status: Type.Literal('success'), message: Type.String(), data })
