import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kernel } from '#kernel/kernel.ts'
import { presentedBrowser } from '../cookies.ts'
import { signInContextOf } from '../sign-in-context.ts'
import type { Click } from './first-proof.ts'

export const clickOf = (kernel: Kernel, request: FastifyRequest, reply: FastifyReply): Click => ({
  caller: request.caller,
  browser: presentedBrowser(request),
  context: signInContextOf(kernel, request, reply),
})
